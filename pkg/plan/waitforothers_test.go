// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// past has the records by the pull request's number, and the subject that was recorded for an
// event.
type past struct {
	*env
	byNumber map[int64][]history.Record
	about    string
	err      error
	first    func() error
}

func (p *past) make(t *testing.T, in plan.Input) (*plan.Plan, error) {
	t.Helper()
	sources := p.sources()
	sources.Past = plan.Past{
		WaitForOthers: func(context.Context, string) error {
			p.ask("first")
			if p.first == nil {
				return nil
			}
			return p.first()
		},
		RecordsOf: func(_ context.Context, subject string) ([]history.Record, error) {
			p.ask("records")
			for number, list := range p.byNumber {
				spec := in.Event.Spec.DeepCopy()
				if number != 0 {
					spec.PullRequest = &v1alpha1.PullRequest{Number: number}
				}
				if spec.Subjects() == subject {
					return list, p.err
				}
			}
			return nil, p.err
		},
		RecordSubject: func(_ context.Context, subject string) error { p.ask("about"); p.about = subject; return nil },
	}
	return plan.Make(t.Context(), in, sources)
}

// A check that is requested twice runs again once: the newest run of its pipeline on that ref is
// not started until it is finished.
func TestRerunSkipsRunningCheck(t *testing.T) {
	t.Parallel()
	runOf := func(event string) string { return resources.RunName(event, ".tekton/b.yaml", 0, "b") }
	tag := push()
	tag.Event.Spec.BaseRef = "refs/tags/v1"
	press := func(of string) plan.Input {
		return pressed(v1alpha1.Rerun{Check: "Pipelines as Code CI / b", ExternalID: runOf(of)})
	}
	settled := ran(press("push-1"), "rerun-1", "b=")
	settled.Event.Status.Phase = v1alpha1.PhaseSettled
	for name, c := range map[string]struct {
		records []history.Record
		want    []string
	}{
		"it runs": {
			[]history.Record{ran(push(), "push-1", "b=Failed"), ran(press("push-1"), "rerun-1", "b=")}, nil,
		},
		"it has ended": {
			[]history.Record{ran(push(), "push-1", "b=Failed"), ran(press("push-1"), "rerun-1", "b=Failed")}, []string{"b"},
		},
		"nobody knows how it ended": {[]history.Record{ran(push(), "push-1", "b=Failed"), settled}, []string{"b"}},
		"another pipeline runs": {
			[]history.Record{ran(push(), "push-1", "b=Failed"), ran(push(), "push-2", "a=")}, []string{"b"},
		},
		"it runs of another ref": {
			[]history.Record{ran(push(), "push-1", "b=Failed"), ran(tag, "push-2", "b=")}, []string{"b"},
		},
		"what is pressed itself runs": {[]history.Record{ran(push(), "push-1", "b=")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &past{env: &env{writers: "presser", files: []git.File{pipeline("a"), pipeline("b")}},
				byNumber: map[int64][]history.Record{0: c.records}}
			made, err := w.make(t, press("push-1"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, created(made)); diff != "" {
				t.Errorf("%s: %v", diff, made.Decisions)
			}
		})
	}
}

// An event that starts what has failed waits for other plans, after the user's permission is known,
// and then reads the records; no other event waits.
func TestRetestWaitsForOtherPlans(t *testing.T) {
	t.Parallel()
	for comment, want := range map[string][]string{
		"/retest":           {"comment", "access of commenter", "first", "complete"},
		"/ok-to-test":       {"comment", "access of commenter", "first", "complete"},
		"/test":             {"comment", "access of commenter", "complete"},
		"/retest a":         {"comment", "access of commenter", "complete"},
		"/retest a=1 a=2 b": {"comment", "access of commenter", "complete"},
	} {
		w := written(comment)
		w.files, w.writers = []git.File{pulled("a")}, "commenter author"
		sources := w.sources()
		sources.WaitForOthers = func(context.Context, string) error { w.ask("first"); return nil }
		in := commentedHere()
		in.Event.Spec.Sender = "commenter"
		if _, err := plan.Make(t.Context(), in, sources); err != nil {
			t.Fatal(err)
		}
		if got := w.asked[:min(len(want), len(w.asked))]; !slices.Equal(got, want) {
			t.Errorf("%s asks %v, want %v first", comment, w.asked, want)
		}
		sources.WaitForOthers = func(context.Context, string) error { return down() }
		if _, err := plan.Make(t.Context(), in, sources); (err != nil) != slices.Contains(want, "first") {
			t.Errorf("%s while another one is first: %v", comment, err)
		}
	}
	p := &past{env: &env{writers: "presser", files: []git.File{pipeline("b")}},
		byNumber: map[int64][]history.Record{0: {ran(push(), "push-1", "b=Failed")}}}
	p.first = func() error { p.byNumber[0] = append(p.byNumber[0], ran(push(), "push-2", "b=")); return nil }
	made, err := p.make(t, pressed(v1alpha1.Rerun{All: true}))
	if err != nil || len(made.Runs) != 0 {
		t.Errorf("what has been started meanwhile: %v, runs %v", err, created(made))
	}
	if about, first := slices.Index(p.asked, "about"), slices.Index(p.asked, "first"); about < 0 || first < about {
		t.Errorf("%v, want that others can find it before it asks who is first", p.asked)
	}
}

// A pull request is opened while nothing can be planned, and its commit is approved and planned
// first: the commit runs once.
func TestApprovalSkipsStartedPipelines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		action   string
		happened int // the approval is of the third second
		want     []string
	}{
		"opened before":   {"opened", 1, []string{"b"}},
		"reopened since":  {"reopened", 4, []string{"a", "b"}},
		"labelled before": {match.LabelEvent, 1, []string{"labels"}},
	} {
		approved := approvedBefore(sha, "main")
		approved.Event.Status.Runs = []v1alpha1.Run{
			{Pipeline: "a", Name: "a-run", UID: "1"}, {Pipeline: "labels", Name: "labels-run", UID: "2"},
		}
		in := forked()
		in.Event.Spec.Action, in.Event.Spec.HappenedAt, in.Event.Spec.ReceivedAt = c.action, second(c.happened),
			*second(c.happened)
		if c.action == match.LabelEvent {
			in.Event.Spec.EventType, in.Event.Spec.Actor, in.Event.Spec.PullRequest.Labels = match.LabelEvent, "member",
				[]string{"ready"}
		}
		w := &env{files: []git.File{pulled("a"), pulled("b"), pulled("labels", `on-label: "[ready]"`)}, writers: "member",
			records: []history.Record{approved}}
		made := w.make(t, in)
		if diff := cmp.Diff(c.want, created(made)); diff != "" {
			t.Errorf("%s: %s: %v", name, diff, made.Decisions)
		}
	}
}
