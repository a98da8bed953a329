// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// B11: the session makes one request, and only for a step that has waited.
func TestSuperseding(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.newer = "newer"
	s := r.begin("e", "app", "git.example")
	ask := func(what, sha string, waited bool, want string) {
		t.Helper()
		spec := s.event.Spec
		spec.SHA = sha
		if got, err := s.Superseding(t.Context(), &spec, waited); got != want || err != nil {
			t.Errorf("%s: superseded by %q, error %v, want %q", what, got, err, want)
		}
	}
	ask("a step that has not waited", "planned", false, "")
	ask("a comment that is not planned", "", true, "")
	if len(r.logins) != 0 {
		t.Fatal("logged in for nothing")
	}
	ask("a step that has waited", "planned", true, "newer")
	ask("another one that has not", "planned", false, "newer")
	ask("another one that has", "planned", true, "newer")
	if diff := cmp.Diff([]string{"planned"}, r.askedFor); diff != "" {
		t.Errorf("asked about: %s", diff)
	}
}

// A replica that does not have a push yet names the commit that the push replaced.
func TestReplacedCommitSupersedesNothing(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.newer = "before"
	s := r.begin("e", "app", "git.example")
	if got, err := s.Superseding(t.Context(), &s.event.Spec, true); got != "" || err != nil || len(r.askedFor) != 1 {
		t.Errorf("superseded by %q, error %v, asked about %v", got, err, r.askedFor)
	}
}

// After an error nothing is superseded, and each step of the session gets the same error.
func TestSupersedingReturnsErrors(t *testing.T) {
	t.Parallel()
	unreachable := fault.Transientf(fault.ReasonGitUnreachable, "no answer")
	for name, hinder := range map[string]func(*fixture){
		"by the service":   func(r *fixture) { r.newerErr = unreachable },
		"without a log-in": func(r *fixture) { r.refuse = unreachable },
	} {
		r := newFixture(t)
		hinder(r)
		s := r.begin("e", "app", "git.example")
		for range 2 {
			if got, err := s.Superseding(t.Context(), &s.event.Spec, true); got != "" || !fault.Is(err, fault.Transient) {
				t.Errorf("%s: superseded by %q, error %v", name, got, err)
			}
		}
		if len(r.logins) != 1 || len(r.askedFor) > 1 {
			t.Errorf("%s: %d logins, asked about %v", name, len(r.logins), r.askedFor)
		}
	}
}
