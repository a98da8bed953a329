// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"strings"
	"testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz/approval"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// Differ returns no difference, except for what was touched in one commit.
func (w *env) Differ(_ context.Context, earlier, later string, names ...string) ([]string, error) {
	w.ask("differ " + earlier[:7] + " " + later[:7])
	var differing []string
	for _, name := range names {
		if (w.touched[later] == name) != (w.touched[earlier] == name) {
			differing = append(differing, name)
		}
	}
	return differing, w.differErr
}

// forbidden is the answer of a service that refuses the read.
func forbidden() error { return fault.Operatorf(fault.ReasonPermissionMissing, "403") }

// remembering is an event with remember-ok-to-test: the author pushes a commit on top of the one
// that member has approved.
func remembering(changes ...func(*plan.Input)) plan.Input {
	in := forked()
	config := *in.Config
	config.RememberApprovals = true
	in.Config = &config
	in.Event.Name = "pull-3"
	in.Event.Spec.SHA, in.Event.Spec.Before, in.Event.Spec.Action = laterSHA, sha, "synchronize"
	for _, change := range changes {
		change(&in)
	}
	return in
}

// rememberedBefore is an event that ran a commit by the approval of another.
func rememberedBefore(of string) history.Record {
	r := onRecord("pull-2", of, 5, v1alpha1.DispositionRuns)
	r.Event.Status.Plan.Approval = &v1alpha1.Approval{
		By: "member", SHA: sha, Event: "comment-1", BaseRef: "main", HeadProjectID: 99,
	}
	return r
}

// forgottenBefore is an event for whose commit the approval no longer counted.
func forgottenBefore() history.Record {
	r := onRecord("pull-4", defaultSHA, 5, v1alpha1.DispositionPending)
	r.Event.Status.Plan.Reason = approval.ReasonForgotten
	return r
}

// spec changes the event's spec.
func spec(change func(*v1alpha1.GitEventSpec)) func(*plan.Input) {
	return func(in *plan.Input) { change(in.Event.Spec) }
}

// policed gives the Repository a policy by which only team may approve.
func policed(in *plan.Input) {
	in.Repository.Spec.Settings = &pacv1alpha1.Settings{
		Policy: &pacv1alpha1.Policy{PullRequest: []string{"team"}, OkToTest: []string{"team"}},
	}
}

// S22: what the author of an approved pull request pushes later runs, unless one of the reasons
// applies for which the approval no longer counts. A waiting event says why.
func TestApprovalIsRemembered(t *testing.T) {
	t.Parallel()
	const pending, forgotten, ignored = "PendingApproval", approval.ReasonForgotten, "NotApproved"
	approvedFirst := []history.Record{onRecord("pull-1", sha, 1, v1alpha1.DispositionPending), approvedBefore(sha, "main")}
	and := func(r ...history.Record) []history.Record {
		return append(append([]history.Record{}, approvedFirst...), r...)
	}
	off := func(in *plan.Input) { config := *in.Config; config.RememberApprovals = false; in.Config = &config }
	labelled := spec(func(s *v1alpha1.GitEventSpec) {
		s.EventType, s.Action, s.Before, s.Actor = match.LabelEvent, "labeled", "", "member"
	})
	reopened := spec(func(s *v1alpha1.GitEventSpec) { s.Action, s.Before = "reopened", "" })
	eve := "eve"
	for name, c := range map[string]struct {
		in     plan.Input
		env    env
		known  []history.Record
		reason string // "" when it runs
		why    string
	}{
		"the author pushes": {remembering(), env{writers: "member"}, approvedFirst, "", ""},
		"at a service that calls it update": {remembering(spec(func(s *v1alpha1.GitEventSpec) { s.Action = "update" })),
			env{writers: "member"}, approvedFirst, "", ""},
		"on top of what is remembered": {
			remembering(), env{writers: "member"}, and(rememberedBefore(defaultSHA)), "", "",
		},
		"the comment is not on record": {
			remembering(), env{writers: "member"}, []history.Record{rememberedBefore(defaultSHA)}, "", "",
		},
		"a member of the team has approved": {
			remembering(policed), env{teams: map[string]string{"team": "member"}}, approvedFirst, "", "",
		},
		"the key is off": {
			remembering(off), env{writers: "member"}, approvedFirst, pending, "no write access",
		},
		"nothing was approved": {
			remembering(), env{writers: "member"}, approvedFirst[:1], pending, "no write access",
		},
		"another user pushes": {remembering(spec(func(s *v1alpha1.GitEventSpec) { s.Actor = "eve" })),
			env{writers: "member"}, approvedFirst, pending, "eve pushed"},
		"a maintainer pushes": {remembering(spec(func(s *v1alpha1.GitEventSpec) { s.Actor = "member" })),
			env{writers: "member"}, approvedFirst, pending, "member pushed"},
		"the service names another user": {
			remembering(), env{writers: "member", actor: &eve}, approvedFirst, pending, "eve pushed",
		},
		"the service names nobody": {
			remembering(), env{writers: "member", actor: new(string)}, approvedFirst, pending, "does not say who",
		},
		"it goes to another branch": {remembering(spec(func(s *v1alpha1.GitEventSpec) { s.BaseRef = "release" })),
			env{writers: "member"}, approvedFirst, forgotten, "another target branch"},
		"it comes from another repository": {remembering(spec(func(s *v1alpha1.GitEventSpec) {
			s.PullRequest.HeadProjectID = 7
		})), env{writers: "member"}, approvedFirst, forgotten, "another repository"},
		"its repository is gone": {remembering(spec(func(s *v1alpha1.GitEventSpec) {
			s.PullRequest.HeadProjectID = 0
		})), env{writers: "member"}, approvedFirst, forgotten, "another repository"},
		"the approver may not write any more": {
			remembering(), env{}, approvedFirst, forgotten, "member may no longer approve it",
		},
		"the approver is out of the team": {remembering(policed), env{writers: "member",
			teams: map[string]string{"team": "x"}}, approvedFirst, forgotten, "member may no longer approve"},
		"the approver is the author": {remembering(spec(func(s *v1alpha1.GitEventSpec) {
			s.PullRequest.Author, s.Actor = "Member", "member"
		})), env{writers: "member"}, approvedFirst, forgotten, "may no longer approve"},
		"definitions were changed": {remembering(), env{
			writers: "member", touched: map[string]string{laterSHA: ".tekton"},
		}, approvedFirst, forgotten, "a different .tekton"},
		"OWNERS were changed": {remembering(), env{
			writers: "member", touched: map[string]string{laterSHA: "OWNERS"},
		}, approvedFirst, forgotten, "a different OWNERS"},
		"aliases were changed": {remembering(), env{
			writers: "member", touched: map[string]string{laterSHA: "OWNERS_ALIASES"},
		}, approvedFirst, forgotten, "a different OWNERS_ALIASES"},
		"it is changed from what was approved, though not from what is remembered": {
			remembering(spec(func(s *v1alpha1.GitEventSpec) { s.Before = defaultSHA })),
			env{writers: "member", touched: map[string]string{laterSHA: ".tekton"}},
			and(rememberedBefore(defaultSHA)), forgotten, "a different .tekton",
		},
		"what was approved is gone": {remembering(), env{
			writers: "member", differErr: fault.Invalidf("NotComparable", "no commit"),
		}, approvedFirst, forgotten, "cannot be found out: no commit"},
		"the approver may not be asked for": {remembering(), env{fails: "access of member", failsWith: forbidden()},
			approvedFirst, forgotten, "asking for the access of member: 403"},
		"it was forgotten before": {
			remembering(), env{writers: "member"}, and(forgottenBefore()), forgotten, "since commit " + defaultSHA,
		},
		"a writer labels what is remembered": {
			remembering(labelled), env{writers: "member"}, and(rememberedBefore(laterSHA)), "", "",
		},
		"a writer labels what nobody has judged": {
			remembering(labelled), env{writers: "member"}, approvedFirst, ignored, "no write access",
		},
		"what is remembered is opened again": {
			remembering(reopened), env{writers: "member"}, and(rememberedBefore(laterSHA)), "", "",
		},
		"it is opened again with a new commit": {
			remembering(reopened), env{writers: "member"}, approvedFirst, pending, "no write access",
		},
		"opened again without the approver": {
			remembering(reopened), env{}, and(rememberedBefore(laterSHA)), forgotten, "may no longer approve",
		},
		"opened again with the key off": {
			remembering(reopened, off), env{writers: "member"}, and(rememberedBefore(laterSHA)), pending, "no write access",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.env.files, c.env.records = []git.File{pipeline("a", `on-cel-expression: 'event_type != ""'`)}, c.known
			made := c.env.make(t, c.in)
			if c.reason != "" {
				if made.Reason != c.reason || !strings.Contains(made.Message, c.why) || len(made.Runs) != 0 ||
					made.Approval != nil || made.EndsPending {
					t.Errorf("%s, %q, %+v, want %s with %q", made.Reason, made.Message, made.Approval, c.reason, c.why)
				}
				return
			}
			if made.Disposition != v1alpha1.DispositionRuns || made.HeadSHA != laterSHA || made.Approval == nil ||
				!made.EndsPending {
				t.Fatalf("%+v, %q, want that %s runs", made.Ending, made.Message, laterSHA)
			}
			if a := made.Approval; a.By != "member" || a.SHA != sha || a.Event != "comment-1" {
				t.Errorf("%+v", a)
			}
			if note := made.Runs[0].Note; !strings.Contains(note,
				"member has approved commit "+sha+", which is remembered for commit "+laterSHA) {
				t.Errorf("the run is told with %q", note)
			}
			if want := "differ " + sha[:7] + " " + laterSHA[:7]; c.env.count(want) != 1 {
				t.Errorf("asked %v, want %s", c.env.asked, want)
			}
		})
	}
}

// A failed read is retried: no run, no verdict.
func TestRememberedApprovalWaitsForFacts(t *testing.T) {
	t.Parallel()
	author := "author"
	for name, w := range map[string]*env{
		"who has pushed":                 {writers: "member", actor: &author, actorErr: down()},
		"whether the approver may still": {fails: "access of member"},
		"with a login that does not work": {
			fails: "access of member", failsWith: fault.Operatorf(fault.ReasonCredentialsRefused, "401"),
		},
		"whether OWNERS name the approver":    {fails: "ownership of member"},
		"whether definitions were changed":    {writers: "member", differErr: down()},
		"what is on record":                   {writers: "member", recordsErr: down()},
		"whether the approver is in the team": {fails: "team with member", teams: map[string]string{"team": "member"}},
	} {
		in := remembering()
		if w.teams != nil {
			policed(&in)
		}
		w.files, w.records = []git.File{pulled("a")}, []history.Record{approvedBefore(sha, "main")}
		made, err := plan.Make(t.Context(), in, w.sources())
		if err == nil || made.Disposition != "" || made.Approval != nil || len(made.Runs) != 0 {
			t.Errorf("%s: %v, %+v", name, err, made)
		}
	}
}
