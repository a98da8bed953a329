// SPDX-License-Identifier: Apache-2.0

package github

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

type poison struct{}

func (poison) RoundTrip(*http.Request) (*http.Response, error) { panic("poison") }

// A panic during a mint reaches each event that waits for it, which may recover. It does not end
// the process, and the next call mints again.
func TestMintPanicReachesCaller(t *testing.T) {
	t.Parallel()
	m := &minter{base: poison{}, api: "https://git.example/", app: 1, installation: 2, repository: 3,
		login: newLogin(1, []byte(appKey()), time.Now), now: time.Now}
	for range 2 {
		caught := func() (caught any) {
			defer func() { caught = recover() }()
			_, err := m.token(t.Context(), time.Minute)
			t.Errorf("returned %v", err)
			return nil
		}()
		if text, ok := caught.(string); !ok || !strings.HasPrefix(text, "poison") {
			t.Errorf("recovered %v", caught)
		}
	}
}
