// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// testAccess checks that CanWrite is true only if the service says so: it is false for an unknown
// user, and a failure is an error.
func testAccess(t *testing.T, open func(*testing.T) Env) {
	w := open(t)
	w.Service.Commit("main", map[string]string{"x": "y"})
	client := connect(t, w)
	for role, want := range map[string]bool{"none": false, "read": false, "write": true, "admin": true} {
		w.Service.Grant("user-"+role, role)
		if got, err := client.CanWrite(t.Context(), "user-"+role); err != nil || got != want {
			t.Errorf("a user with %s: %t, %v", role, got, err)
		}
	}
	for _, user := range []string{"nobody-knows-me", "", "..", "user-admin/../user-admin", "user-admin?x=1", "user-admin#",
		"user admin", "dependabot[bot]"} {
		if got, err := client.CanWrite(t.Context(), user); err != nil || got {
			t.Errorf("user %q: %t, %v, want false", user, got, err)
		}
	}
	failing(t, AskPermission, open, func(t *testing.T, w Env) (bool, error) {
		w.Service.Grant("writer", "write")
		return connect(t, w).CanWrite(t.Context(), "writer")
	})
	t.Run("a user who cannot be found in a repository that cannot be read is not an answer", func(t *testing.T) {
		w := open(t)
		w.Service.Fail(AskPermission, NotFound, 0)
		w.Service.Fail(ReadRepository, NotFound, 0)
		if got, err := connect(t, w).CanWrite(t.Context(), "writer"); got || !fault.Is(err, fault.Operator) {
			t.Errorf("%t, %v, want an Operator fault", got, err)
		}
	})
}

// failing: a failure of an operation is not an answer.
func failing(t *testing.T, op Operation, open func(*testing.T) Env, ask func(*testing.T, Env) (bool, error)) {
	t.Helper()
	for how, want := range map[Failure]fault.Class{
		Unavailable: fault.Transient, Disconnected: fault.Transient, Garbage: fault.Transient, SlowDown: fault.Throttled,
		RateLimited: fault.Throttled, Forbidden: fault.Operator, Unauthorized: fault.Operator,
	} {
		t.Run(string(op)+" "+string(how), func(t *testing.T) {
			w := open(t)
			w.Service.Fail(op, how, 0)
			if got, err := ask(t, w); got || !fault.Is(err, want) {
				t.Errorf("%t, %v, want a fault of class %s", got, err, want)
			}
		})
	}
}

// testMember: a user with any role is a member, other users are not.
func testMember(t *testing.T, open func(*testing.T) Env) {
	w := open(t)
	client := connect(t, w)
	for role, want := range map[string]bool{"none": false, "read": true, "write": true} {
		w.Service.Grant("member-"+role, role)
		if got, err := client.Member(t.Context(), "member-"+role); err != nil || got != want {
			t.Errorf("a user with %s: %t, %v", role, got, err)
		}
	}
	for _, user := range []string{"nobody-knows-me", "", "..", "member-read/../member-read", "member-read?x=1",
		"member read"} {
		if got, err := client.Member(t.Context(), user); err != nil || got {
			t.Errorf("user %q: %t, %v, want false", user, got, err)
		}
	}
	failing(t, AskMember, open, func(t *testing.T, w Env) (bool, error) {
		w.Service.Grant("reader", "read")
		return connect(t, w).Member(t.Context(), "reader")
	})
}

// testTeam: only members are in a team, and a team that does not exist is reported as such.
func testTeam(t *testing.T, open func(*testing.T) Env) {
	w := open(t)
	client := connect(t, w)
	w.Service.Grant("outside", "admin")
	team := w.Service.Join("releasers", "inside")
	for user, want := range map[string]bool{
		"inside": true, "INSIDE": true, "outside": false, "insid": false, "nobody-knows-me": false, "": false, "..": false,
		"inside/../inside": false, "inside?x=1": false,
	} {
		if got, err := client.InTeam(t.Context(), team, user); err != nil || got != want {
			t.Errorf("user %q: %t, %v, want %t", user, got, err, want)
		}
	}
	for _, name := range []string{"nowhere", "", " ", "..", "a/../" + team, team + "?x=1", team + "#", "All Of Us",
		strings.Repeat("x", 10_000)} {
		got, err := client.InTeam(t.Context(), name, "inside")
		f := fault.Of(err)
		notFound := f != nil && f.Class == fault.Invalid && f.Reason == fault.ReasonTeamNotFound
		if got || !notFound || len(f.Message) > 1000 {
			t.Errorf("team %.20q: %t, %v, want that there is none", name, got, err)
		}
	}
	failing(t, AskTeam, open, func(t *testing.T, w Env) (bool, error) {
		return connect(t, w).InTeam(t.Context(), w.Service.Join("releasers", "inside"), "inside")
	})
}
