// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// pair is an env with a push and a pull request of one commit. The time is seconds after the push
// was received.
type pair struct {
	*env
	// bySubject has the records; onOutdate is called with each event that is outdated.
	bySubject map[string][]history.Record
	onOutdate func(history.Record)
	outdated  []string
	notes     map[string]string // of the last one
	now       int
	err       error
}

func (p *pair) make(t *testing.T, in plan.Input) *plan.Plan {
	t.Helper()
	sources := p.sources()
	sources.Past = plan.Past{
		Now: func() time.Time { return second(p.now).Time },
		RecordsOf: func(_ context.Context, subject string) ([]history.Record, error) {
			p.ask("records of")
			return slices.Clone(p.bySubject[subject]), p.err
		},
		Outdate: func(_ context.Context, r history.Record, notes map[string]string) error {
			p.outdated, p.notes = append(p.outdated, r.Event.Name), notes
			if p.onOutdate != nil {
				p.onOutdate(r)
			}
			return nil
		},
	}
	made, err := plan.Make(t.Context(), in, sources)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// knows records events.
func (p *pair) knows(all ...history.Record) *pair {
	if p.bySubject == nil {
		p.bySubject = map[string][]history.Record{}
	}
	for _, r := range all {
		p.bySubject[r.Event.Spec.Subjects()] = append(p.bySubject[r.Event.Spec.Subjects()], r)
	}
	return p
}

// staging is a push to the branch of the open pull request 4, and ownPull what the Git service
// returns for it.
func staging() plan.Input {
	in := push()
	in.Event.Spec.BaseRef, in.Event.Spec.HeadRef, in.Event.Spec.ReceivedAt = "refs/heads/staging", "refs/heads/staging",
		*second(0)
	return in
}

func ownPull(change func(*git.Pull)) git.Pull {
	pull := git.Pull{Number: 4, Open: true, SHA: sha, BaseRef: "main", HeadRef: "staging", HeadProjectID: 5}
	if change != nil {
		change(&pull)
	}
	return pull
}

// pulled4 is a recorded event of pull request 4; "" is not planned yet.
func pulled4(disposition v1alpha1.Disposition, change func(*v1alpha1.GitEvent)) history.Record {
	r := onRecord("pull-4", sha, 0, disposition)
	r.Event.Spec.PullRequest = &v1alpha1.PullRequest{Number: 4, Author: "author", HeadProjectID: 5}
	r.Event.Spec.HeadRef, r.Event.Spec.Action = "staging", "synchronize"
	switch disposition {
	case "":
		r.Event.Status = v1alpha1.GitEventStatus{}
	case v1alpha1.DispositionRuns:
		r.Event.Status.Runs = []v1alpha1.Run{{Name: "hello"}}
	}
	if change != nil {
		change(r.Event)
	}
	return r
}

// both is a pipeline for pushes and pull requests, whatever their branches.
func both(name string) git.File {
	return edited(pipeline(name), "[push]", "[push, pull_request]", `"[main]"`, `"[main, staging]"`)
}

// A push is declined only for a pull request of its own branch and repository whose own event runs
// the same commit.
func TestPushIsDeclinedOnlyForPullRequestOfItsBranch(t *testing.T) {
	t.Parallel()
	pulls := func(change func(*git.Pull)) []git.Pull { return []git.Pull{ownPull(change)} }
	runs := pulled4(v1alpha1.DispositionRuns, nil)
	waited := func(e *v1alpha1.GitEvent) {
		e.Status.Runs = []v1alpha1.Run{
			{Pipeline: plan.Definitions, Name: plan.WaitingRun(e.Name), Result: &v1alpha1.Result{}},
		}
	}
	waits := func(e *v1alpha1.GitEvent) { // the Git service refuses something
		e.Status.Plan.Decisions = []v1alpha1.Decision{{File: plan.Definitions, Open: true}}
		e.Status.Runs = []v1alpha1.Run{{Pipeline: plan.Definitions, Name: plan.WaitingRun(e.Name), Unresolved: true}}
	}
	for name, c := range map[string]struct {
		pulls   []git.Pull
		records []history.Record
		now     int
		want    string // the reason for waiting, "" if the push runs, or "left"
	}{
		"its own event has runs":           {pulls(nil), []history.Record{runs}, 0, "left"},
		"its own event has runs, long ago": {pulls(nil), []history.Record{runs}, 9999, "left"},
		"the head has moved since": {
			pulls(func(p *git.Pull) { p.SHA = laterSHA }), []history.Record{runs}, 0, "left",
		},
		"it is closed":            {pulls(func(p *git.Pull) { p.Open = false }), []history.Record{runs}, 0, ""},
		"it is of another branch": {pulls(func(p *git.Pull) { p.HeadRef = "old" }), []history.Record{runs}, 0, ""},
		"it is of a fork's branch": {
			pulls(func(p *git.Pull) { p.HeadProjectID = 99 }), []history.Record{runs}, 0, "",
		},
		"its fork was deleted": {
			pulls(func(p *git.Pull) { p.HeadProjectID = 0 }), []history.Record{runs}, 0, "",
		},
		"another commit is its head": {pulls(func(p *git.Pull) { p.SHA = laterSHA }), nil, 0, ""},
		"it goes to this branch": {
			pulls(func(p *git.Pull) { p.HeadRef, p.BaseRef = "main", "staging" }), []history.Record{runs}, 0, "",
		},
		"the second of two runs it": {
			append(pulls(func(p *git.Pull) { p.Number = 3 }), ownPull(nil)), []history.Record{runs}, 0, "left",
		},
		"it waits for approval": {pulls(nil), []history.Record{pulled4(v1alpha1.DispositionPending, nil)}, 0, ""},
		"no pipeline is for it": {pulls(nil), []history.Record{pulled4(v1alpha1.DispositionIgnored, nil)}, 0, ""},
		"it was refused":        {pulls(nil), []history.Record{pulled4(v1alpha1.DispositionRefused, nil)}, 0, ""},
		"it was superseded": {
			pulls(nil), []history.Record{pulled4(v1alpha1.DispositionSuperseded, nil)}, 0, "",
		},
		"it is not planned": {pulls(nil), []history.Record{pulled4("", nil)}, 0, fault.ReasonBusy},
		"it is not planned for a while": {
			pulls(nil), []history.Record{pulled4("", nil)}, 90, fault.ReasonPullRequestEvent,
		},
		"it is not planned for too long": {pulls(nil), []history.Record{pulled4("", nil)}, 300, ""},
		"it has not arrived":             {pulls(nil), nil, 0, fault.ReasonBusy},
		"it has not arrived for a while": {pulls(nil), nil, 299, fault.ReasonPullRequestEvent},
		"it is lost":                     {pulls(nil), nil, 300, ""},
		"the head is not known yet":      {pulls(func(p *git.Pull) { p.SHA = "" }), nil, 0, fault.ReasonBusy},
		"only a label was set": {pulls(nil), []history.Record{
			pulled4(v1alpha1.DispositionRuns, func(e *v1alpha1.GitEvent) { e.Spec.EventType = "pull_request_labeled" }),
		}, 400, ""},
		"only a comment started something": {pulls(nil), []history.Record{
			pulled4(v1alpha1.DispositionRuns, func(e *v1alpha1.GitEvent) { e.Spec.Comment = &v1alpha1.Comment{} }),
		}, 400, ""},
		"only another commit of it has run": {pulls(nil),
			[]history.Record{pulled4(v1alpha1.DispositionRuns, func(e *v1alpha1.GitEvent) { e.Spec.SHA = laterSHA })}, 400, ""},
		"it shows what it waits for": {
			pulls(nil), []history.Record{pulled4(v1alpha1.DispositionRuns, waits)}, 130, fault.ReasonPullRequestEvent,
		},
		"it shows that for too long": {
			pulls(nil), []history.Record{pulled4(v1alpha1.DispositionRuns, waits)}, 300, "",
		},
		"it has shown that and runs none": {
			pulls(nil), []history.Record{pulled4(v1alpha1.DispositionIgnored, waited)}, 130, "",
		},
		"it shows that no pipeline is for it": {pulls(nil), []history.Record{
			pulled4(v1alpha1.DispositionIgnored, func(e *v1alpha1.GitEvent) {
				e.Status.Runs = []v1alpha1.Run{
					{Pipeline: "hello", Name: "hello", Result: &v1alpha1.Result{Outcome: v1alpha1.OutcomeSkipped}},
				}
			}),
		}, 0, ""},
		"it has shown that and was ended": {
			pulls(nil), []history.Record{pulled4(v1alpha1.DispositionRuns, waited)}, 130, "",
		},
		"it was closed by then": {pulls(nil), []history.Record{
			pulled4(v1alpha1.DispositionIgnored, func(e *v1alpha1.GitEvent) { e.Spec.Action = "closed" }),
		}, 0, fault.ReasonBusy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := (&pair{env: &env{files: []git.File{both("hello")}, pulls: c.pulls}, now: c.now}).knows(c.records...)
			made := p.make(t, staging())
			got := ""
			switch {
			case made.Wait != nil:
				got = fault.Of(made.Wait).Reason
			case strings.Contains(reasons(made)["hello"], "in pull request #4, whose own event runs it"):
				got = "left"
			}
			if got != c.want || len(created(made)) != map[bool]int{true: 1}[c.want == ""] {
				t.Errorf("%q with %v (%v), want %q", got, created(made), reasons(made), c.want)
			}
		})
	}
}

// B14: a failed read is retried.
func TestPushWaitsForRecords(t *testing.T) {
	t.Parallel()
	p := &pair{env: &env{files: []git.File{both("hello")}, pulls: []git.Pull{ownPull(nil)}}, now: 999,
		err: errors.New("etcd is away")}
	if made := p.make(t, staging()); made.Wait == nil || len(made.Runs) != 0 {
		t.Errorf("%v with %v, want a wait", made.Wait, created(made))
	}
	in := ownEventOf4()
	p.writers = "author"
	if made := p.make(t, in); made.Wait == nil || len(made.Runs) != 0 {
		t.Errorf("the pull request: %v with %v, want a wait", made.Wait, created(made))
	}
}

// The number of a merged pull request is that of the one that was merged into the branch. A tag has
// no branch.
func TestMergedPullRequestIsOfPushedBranch(t *testing.T) {
	t.Parallel()
	merged := []git.Pull{
		{Number: 3, Merged: true, BaseRef: "old"}, {Number: 5, Merged: true, BaseRef: "main"}, {Number: 6, BaseRef: "main"},
	}
	for ref, want := range map[string]string{"refs/heads/main": "5", "refs/heads/old": "3",
		"refs/heads/production": "{{ pull_request_number }}", "refs/tags/v1": "3"} {
		in := push()
		in.Event.Spec.BaseRef, in.Event.Spec.HeadRef = ref, ref
		w := &env{
			files: []git.File{pipeline("a", `on-cel-expression: "true"`, `note: "{{ pull_request_number }}"`)}, pulls: merged,
		}
		made := w.make(t, in)
		if len(created(made)) != 1 || !strings.Contains(string(made.Runs[0].Manifest), `note":"`+want+`"`) {
			t.Errorf("%s: want %q: %v %s", ref, want, reasons(made), made.Runs[0].Manifest)
		}
	}
}
