// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "testing"

func TestRef(t *testing.T) {
	for name, tt := range map[string]struct {
		spec GitEventSpec
		want string
	}{
		"a push to a branch": {GitEventSpec{BaseRef: "refs/heads/feature/x"}, "feature/x"},
		"a push of a tag":    {GitEventSpec{BaseRef: "refs/tags/v1"}, "tags/v1"},
		"a pull request": {
			GitEventSpec{BaseRef: "main", HeadRef: "topic", PullRequest: &PullRequest{Number: 12}}, "#12",
		},
		"a comment, which names no branch": {
			GitEventSpec{PullRequest: &PullRequest{Number: 12}, Comment: &Comment{ID: 1}}, "#12",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tt.spec.Ref(); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestMayRunAgain(t *testing.T) {
	plan := func(reason string) *Plan { return &Plan{Reason: reason} }
	for name, c := range map[string]struct {
		status GitEventStatus
		want   bool
	}{
		"refused":                {GitEventStatus{Phase: PhaseSettled, Disposition: DispositionRefused}, true},
		"pending":                {GitEventStatus{Phase: PhaseSettled, Disposition: DispositionPending}, true},
		"refused and still open": {GitEventStatus{Disposition: DispositionRefused}, false},
		"refused with a run": {
			GitEventStatus{Phase: PhaseSettled, Disposition: DispositionRefused, Runs: []Run{{UID: "1"}}}, false,
		},
		"for no pipeline": {
			GitEventStatus{Phase: PhaseSettled, Disposition: DispositionIgnored, Plan: plan("NoMatch")}, false,
		},
		"of a repository not confirmed": {
			GitEventStatus{Phase: PhaseSettled, Disposition: DispositionIgnored, Plan: plan(ReasonAnotherRepository)}, true,
		},
		"without a proof of ownership": {
			GitEventStatus{Phase: PhaseSettled, Disposition: DispositionIgnored, Plan: plan(ReasonNotProven)}, true,
		},
		"ignored by a version before":     {GitEventStatus{Phase: PhaseSettled, Disposition: DispositionIgnored}, false},
		"with the runs that were planned": {GitEventStatus{Phase: PhaseSettled, Disposition: DispositionRuns}, false},
	} {
		if got := (&GitEvent{Status: c.status}).MayRunAgain(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
