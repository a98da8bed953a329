// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// GitHub's published limits apply to github.com only.
func TestRules(t *testing.T) {
	t.Parallel()
	for host, published := range map[string]bool{"api.github.com": true, "octocorp.ghe.com": true, "ghe.example": false,
		"api.github.com.example": false} {
		rules := Of(host)
		if got := rules.OneWrite && rules.AtOnce > 0 && rules.AtOnce <= 100 && len(rules.Budgets) == 3; got != published ||
			!published && (rules.OneWrite || rules.AtOnce != 0 || rules.Budgets != nil) {
			t.Errorf("%s: %+v", host, rules)
		}
	}
	for method, want := range map[string][2]int{http.MethodGet: {1, 0}, http.MethodHead: {1, 0}, http.MethodPost: {5, 1},
		http.MethodPatch: {5, 0}, http.MethodDelete: {5, 0}} {
		if call := (provider.Call{Method: method}); points(call) != want[0] || made(call) != want[1] {
			t.Errorf("%s costs %d points and makes %d", method, points(call), made(call))
		}
	}
	if again := (provider.Call{Method: http.MethodPost, Repeats: true}); points(again) != 5 || made(again) != 0 {
		t.Errorf("a redelivery costs %d points and makes %d", points(again), made(again))
	}
	for request, want := range map[string]int{"POST /repos/a/b/issues/1/comments": 1,
		"PATCH /repos/a/b/issues/comments/1": 0, "GET /repos/a/b/issues/1/comments": 0, "POST /repos/a/b/check-runs": 0} {
		method, path, _ := strings.Cut(request, " ")
		if got := told(provider.Call{Notifies: Notifies(httptest.NewRequest(method, path, nil))}); got != want {
			t.Errorf("%s: people are notified of %d comments, want %d", request, got, want)
		}
	}
}
