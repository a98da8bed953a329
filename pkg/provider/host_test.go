// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

func TestCheckRedirect(t *testing.T) {
	cases := []struct {
		name, from, to, method string
		follow                 bool
	}{
		{"a renamed repository", "https://git.example/a", "https://git.example/b", http.MethodGet, true},
		{"a write that would become a read", "https://git.example/a", "https://git.example/b", http.MethodPost, false},
		{"the token would be sent unencrypted", "https://git.example/a", "http://git.example/b", http.MethodGet, false},
		{"a test's server has no encryption", "http://127.0.0.1:1/a", "http://127.0.0.1:1/b", http.MethodGet, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			first, _ := http.NewRequestWithContext(t.Context(), c.method, c.from, strings.NewReader(""))
			next, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, c.to, nil)
			err := CheckRedirect(next, []*http.Request{first})
			if (err == nil) != c.follow || err != nil && !fault.Is(err, fault.Operator) {
				t.Errorf("%v, want to follow: %t", err, c.follow)
			}
		})
	}
}

// The part before the host may be a password, and the message ends in a condition.
func TestBaseURLRepeatsNoPassword(t *testing.T) {
	for _, raw := range []string{"https://ci:hunter2@git.example", "https://ci:hunter2%zz@git.example",
		"http://ci:hunter2@git.example", "ci:hunter2@git.example"} {
		if _, err := BaseURL("git_provider.url", raw); !fault.Is(err, fault.Operator) ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", raw, err)
		}
	}
	if _, err := BaseURL("git_provider.url", "git.example"); err == nil ||
		!strings.Contains(err.Error(), `"git.example"`) {
		t.Errorf("%v, want it to name what is set", err)
	}
}
