// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// testAccess: only a positive answer is yes, and no failure is an answer.
func testAccess(t *testing.T, open func(*testing.T) World) {
	w := open(t)
	w.Service.Commit("main", map[string]string{"x": "y"})
	client := connect(t, w)
	for role, want := range map[string]bool{"none": false, "read": false, "write": true, "admin": true} {
		w.Service.Grant("user-"+role, role)
		if got, err := client.CanWrite(t.Context(), "user-"+role); err != nil || got != want {
			t.Errorf("a user with %s: %t, %v", role, got, err)
		}
	}
	for _, user := range []string{"nobody-knows-me", "", "..", "user-admin/../user-admin", "user-admin?x=1", "user-admin#", "user admin", "dependabot[bot]"} {
		if got, err := client.CanWrite(t.Context(), user); err != nil || got {
			t.Errorf("user %q: %t, %v, want false", user, got, err)
		}
	}
	failures := map[Failure]fault.Class{
		Unavailable: fault.Transient, Disconnected: fault.Transient, Garbage: fault.Transient, SlowDown: fault.Throttled,
		RateLimited: fault.Throttled, Forbidden: fault.Operator, Unauthorized: fault.Operator,
	}
	for how, want := range failures {
		t.Run(string(how), func(t *testing.T) {
			w := open(t)
			w.Service.Grant("writer", "write")
			w.Service.Fail(AskPermission, how, 0)
			if got, err := connect(t, w).CanWrite(t.Context(), "writer"); got || !fault.Is(err, want) {
				t.Errorf("%t, %v, want a fault of class %s", got, err, want)
			}
		})
	}
	t.Run("a user who cannot be found in a repository that cannot be read is not an answer", func(t *testing.T) {
		w := open(t)
		w.Service.Fail(AskPermission, NotFound, 0)
		w.Service.Fail(ReadRepository, NotFound, 0)
		if got, err := connect(t, w).CanWrite(t.Context(), "writer"); got || !fault.Is(err, fault.Operator) {
			t.Errorf("%t, %v, want an Operator fault", got, err)
		}
	})
}
