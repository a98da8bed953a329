// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// S27: a re-run needs write access, read before anything else. A fork's commit runs again only if
// it ran before and its author has write access.
func TestRerunNeedsWriteAccess(t *testing.T) {
	t.Parallel()
	before := map[int64][]history.Record{4: {ran(forked(), "pull-1", "a=Failed")}}
	waits := ran(forked(), "pull-1", "")
	waits.Event.Status.Disposition = v1alpha1.DispositionPending
	approved := ran(forked(), "comment-1", "a=Failed")
	approved.Event.Status.Plan.Approval = &v1alpha1.Approval{
		By: "member", Event: "comment-1", BaseRef: "main", HeadProjectID: 99,
	}
	for name, c := range map[string]struct {
		byNumber map[int64][]history.Record
		writers  string
		head     string
		reason   string // "" runs
		calls    int
	}{
		"nobody":                                {before, "author", sha, "NotApproved", 1},
		"a writer, of a writer's fork":          {before, "presser author", sha, "", 0},
		"a writer, of an older commit":          {before, "presser author", defaultSHA, "", 0},
		"a writer, of an untrusted user's fork": {before, "presser", sha, "Ignored: NotApproved", 0},
		"a writer, of an approved commit":       {map[int64][]history.Record{4: {approved}}, "presser", sha, "", 0},
		"a writer, of what nobody allowed": {
			map[int64][]history.Record{4: {waits}}, "presser author", sha, "NotApproved", 0,
		},
		"a writer, without a record": {nil, "presser author", sha, "NotApproved", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &past{env: &env{writers: c.writers, files: []git.File{pipeline("a")}}, byNumber: c.byNumber}
			w.true = described(c.head, 99, "author")
			made, err := w.make(t, pressed(v1alpha1.Rerun{All: true, Pulls: []int64{4}}))
			got := ""
			var end *plan.IgnoredError
			switch {
			case errors.As(err, &end):
				got = end.Why.Reason
			case err != nil:
				t.Fatal(err)
			case made.Disposition != v1alpha1.DispositionRuns:
				got = string(made.Disposition) + ": " + made.Reason
			case made.HeadSHA != sha:
				t.Errorf("it runs %s", made.HeadSHA)
			}
			if got != c.reason || c.calls > 0 && len(w.asked) != c.calls {
				t.Errorf("%q after %v, want %q", got, w.asked, c.reason)
			}
		})
	}
}

// While the user's permission, the records or the pull requests of the commit are not known,
// nothing is decided.
func TestRerunIsRetried(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*past){
		"who may": func(p *past) { p.accessErr = down() }, "what ran": func(p *past) { p.err = down() },
		"what holds it": func(p *past) { p.pullsErr = down() },
	} {
		w := &past{env: &env{writers: "presser", files: []git.File{pipeline("a")}}}
		fail(w)
		_, err := w.make(t, pressed(v1alpha1.Rerun{All: true}))
		var end *plan.IgnoredError
		if err == nil || errors.As(err, &end) {
			t.Errorf("%s: %v, want a wait", name, err)
		}
	}
}

// A commit of which only a check's name is known runs only at its pull request's head, and nowhere
// if GitHub names no place.
func TestRerunOfUnknownCheck(t *testing.T) {
	t.Parallel()
	w := &past{env: &env{writers: "presser", files: []git.File{pipeline("a")}}}
	w.true = described(defaultSHA, 5, "author")
	for reason, in := range map[string]plan.Input{
		"NotTheHead":   pressed(v1alpha1.Rerun{Check: "x", ExternalID: "y", Pulls: []int64{4}}),
		"UnknownCheck": pressed(v1alpha1.Rerun{Check: "x", ExternalID: "y"}),
	} {
		if reason == "UnknownCheck" {
			in.Event.Spec.BaseRef = ""
		}
		_, err := w.make(t, in)
		var end *plan.IgnoredError
		if !errors.As(err, &end) || end.Why.Reason != reason {
			t.Errorf("%v, want %s", err, reason)
		}
	}
}
