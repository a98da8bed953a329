// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// ownEventOf4 is the event that pushed4 records, to be planned.
func ownEventOf4() plan.Input {
	in := staging()
	in.Event.Name, in.Event.Spec = "pull-4", &pulled4("", nil).Event.Spec
	in.Event.Spec.ReceivedAt, in.Event.Spec.BaseRef = *second(400), "main"
	return in
}

// pushed is the recorded push, planned that many seconds after it was received.
func pushed(planned int, ended string) history.Record {
	r := ran(staging(), "push-1", ended)
	r.Event.Status.Disposition, r.Event.Status.Plan.At = v1alpha1.DispositionRuns, second(planned)
	return r
}

// The delivery of a pull request that arrives after its push has stopped waiting does not run the
// same pipelines again.
func TestLatePullRequestSkipsPipelinesOfPush(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		push history.Record
		pull func(*v1alpha1.GitEventSpec)
		want string // the pipelines that the pull request starts
	}{
		"the push has started one": {pushed(300, "a="), nil, "b"},
		"it has ended":             {pushed(300, "a=Failed b=Succeeded"), nil, ""},
		"it was refused":           {pushed(300, "a=Refused"), nil, "a b"},
		"the push was planned just before": {
			pushed(0, "a="), func(s *v1alpha1.GitEventSpec) { s.HappenedAt, s.Before = second(5), laterSHA }, "b",
		},
		"the push was planned long before": {
			pushed(0, "a="), func(s *v1alpha1.GitEventSpec) { s.HappenedAt, s.Before = second(60), laterSHA }, "a b",
		},
		"the pull request was opened later": {
			pushed(0, "a="), func(s *v1alpha1.GitEventSpec) { s.HappenedAt, s.Action = second(5), "opened" }, "a b",
		},
		"it is of a fork": {
			pushed(300, "a="), func(s *v1alpha1.GitEventSpec) { s.PullRequest.HeadProjectID = 99 }, "a b",
		},
		"it is of another branch": {
			pushed(300, "a="), func(s *v1alpha1.GitEventSpec) { s.HeadRef = "other" }, "a b",
		},
		"the time of the plan is not known": {
			func() history.Record { r := pushed(0, "a="); r.Event.Status.Plan.At = nil; return r }(), nil, "a b",
		},
		"what was pushed is a tag": {
			func() history.Record { r := pushed(300, "a="); r.Event.Spec.BaseRef = "refs/tags/staging"; return r }(), nil, "a b",
		},
		"somebody asked the push to be rerun": {func() history.Record {
			r := pushed(300, "a=")
			r.Event.Spec.Rerun = &v1alpha1.Rerun{}
			return r
		}(), nil, "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := ownEventOf4()
			if c.pull != nil {
				c.pull(in.Event.Spec)
			}
			p := (&pair{env: &env{files: []git.File{both("a"), both("b")}, writers: "author"}, now: 400}).knows(c.push)
			in.Event.Spec.Actor = "author"
			made := p.make(t, in)
			if got := strings.Join(created(made), " "); got != c.want {
				t.Errorf("runs %q, want %q: %v", got, c.want, reasons(made))
			}
		})
	}
}

// A pull request reads what its push has started only if needed: with the setting, for its own
// event, if something would run.
func TestPullRequestReadsPushOnlyIfNeeded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*plan.Input)
		files  []git.File
		want   int
	}{
		"its own event":  {func(*plan.Input) {}, []git.File{both("a"), both("b")}, 1},
		"the setting":    {func(in *plan.Input) { in.Config.SkipPushOfPulls = false }, []git.File{both("a")}, 0},
		"nothing to run": {func(*plan.Input) {}, []git.File{pipeline("a")}, 0},
		"a label": {func(in *plan.Input) { in.Event.Spec.EventType = "pull_request_labeled" },
			[]git.File{pulled("a", "on-label: bug")}, 0},
		"from a fork": {func(in *plan.Input) { in.Event.Spec.PullRequest.HeadProjectID = 99 }, []git.File{both("a")}, 0},
	} {
		in := ownEventOf4()
		in.Event.Spec.PullRequest.Labels, in.Event.Spec.Actor = []string{"bug"}, "author"
		c.change(&in)
		p := &pair{env: &env{files: c.files, writers: "author"}}
		made := p.make(t, in)
		if got := p.count("records of"); got != c.want || made.Wait != nil {
			t.Errorf("%s: %d reads, want %d (%v)", name, got, c.want, reasons(made))
		}
	}
}
