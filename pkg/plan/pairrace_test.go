// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// A push that no longer waits, and a pull request whose event has just arrived, are planned by two
// workers: whichever is stored first, the other notices.
func TestPushAndLatePullRequestRunPipelineOnce(t *testing.T) {
	t.Parallel()
	undecidedPush := pushed(0, "")
	undecidedPush.Event.Status = v1alpha1.GitEventStatus{}
	for _, first := range []string{"push", "pull"} {
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			w := &env{files: []git.File{both("a")}, writers: "author", pulls: []git.Pull{ownPull(nil)}}
			p := (&pair{env: w, now: 400}).knows(pulled4("", nil), undecidedPush)
			in := ownEventOf4()
			in.Event.Spec.Actor = "author"
			if first == "push" { // the push is written while the pull request reads
				p.onOutdate = func(r history.Record) { p.bySubject[r.Event.Spec.Subjects()] = []history.Record{pushed(400, "a=")} }
			} else {
				in = staging()
				p.onOutdate = func(r history.Record) {
					p.bySubject[r.Event.Spec.Subjects()] = []history.Record{pulled4(v1alpha1.DispositionRuns, nil)}
				}
			}
			made := p.make(t, in)
			if len(created(made)) != 0 || len(p.outdated) != 1 {
				t.Errorf("%v runs, outdated %v: %v", created(made), p.outdated, reasons(made))
			}
		})
	}
}

// A push that is not planned reads again, and is annotated with the pull request's event that found
// it. With that annotation it waits for the event. Only a push that may run at this moment has to
// read again each time, also if it still waits by the clock of the controller that plans the pull
// request.
func TestAPullRequestHasAPushReadAgain(t *testing.T) {
	t.Parallel()
	note := plumbline.PullAnnotation + "4"
	for name, c := range map[string]struct {
		noted         string
		received, now int // seconds after it was stored
		outdated      bool
	}{
		"it waits":                                   {"", 0, 200, true},
		"it waits for this event":                    {"pull-4", 0, 200, false},
		"it waits for an event before this one":      {"pull-3", 0, 200, true},
		"it does not wait any more":                  {"pull-4", 0, 300, true},
		"nor by the clock of another controller":     {"pull-4", 0, 290, true},
		"its receiver is ahead of the API server":    {"pull-4", 120, 310, true},
		"its receiver is behind, and it still waits": {"pull-4", -120, 200, false},
	} {
		waiting := pushed(0, "")
		waiting.Event.Status, waiting.Event.CreationTimestamp = v1alpha1.GitEventStatus{}, *second(0)
		waiting.Event.Spec.ReceivedAt = *second(c.received)
		waiting.Event.Annotations = map[string]string{note: c.noted}
		in := ownEventOf4()
		in.Event.Spec.Actor = "author"
		p := (&pair{env: &env{files: []git.File{both("a")}, writers: "author"}, now: c.now}).knows(waiting)
		made := p.make(t, in)
		if len(p.outdated) > 0 != c.outdated || len(created(made)) != 1 || c.outdated && p.notes[note] != "pull-4" {
			t.Errorf("%s: outdated %v with %v, runs %v", name, p.outdated, p.notes, created(made))
		}
	}
}

// A push waits for the event that has found it, and is left to it if that one runs the commit,
// whatever the Git service says of the pull request by then.
func TestAPushIsLeftToTheEventThatFoundIt(t *testing.T) {
	t.Parallel()
	closed := ownPull(func(p *git.Pull) { p.Open, p.SHA = false, laterSHA })
	moved := strings.Repeat("b", 40)
	for name, c := range map[string]struct {
		pulls  []git.Pull
		note   string
		before string // of the push
		event  v1alpha1.Disposition
		want   string // "left", "waits" or "" if the push runs
	}{
		"it is closed since":                          {[]git.Pull{closed}, "4", "", v1alpha1.DispositionRuns, "left"},
		"it is not listed any more":                   {nil, "4", "", v1alpha1.DispositionRuns, "left"},
		"it is not listed, and its event not planned": {nil, "4", "", "", "waits"},
		"its event runs nothing":                      {nil, "4", "", v1alpha1.DispositionIgnored, ""},
		"another one has found it":                    {[]git.Pull{closed}, "5", "", v1alpha1.DispositionRuns, ""},
		"it was closed before, after this push":       {[]git.Pull{closed}, "", moved, v1alpha1.DispositionRuns, "left"},
		"it was closed before, after another push":    {[]git.Pull{closed}, "", defaultSHA, v1alpha1.DispositionRuns, ""},
		"it is closed, and its event not planned":     {[]git.Pull{closed}, "", moved, "", "waits"},
	} {
		in := staging()
		in.Event.Spec.Before = c.before
		in.Event.Annotations = map[string]string{
			plumbline.PullAnnotation + c.note: "pull-4", plumbline.OutdatedAnnotation: "7",
		}
		event := pulled4(c.event, func(e *v1alpha1.GitEvent) { e.Spec.Before = moved })
		made := (&pair{env: &env{files: []git.File{both("hello")}, pulls: c.pulls}}).knows(event).make(t, in)
		got := ""
		switch {
		case made.Wait != nil:
			got = "waits"
		case strings.Contains(reasons(made)["hello"], "in pull request #4, whose own event runs it"):
			got = "left"
		}
		if got != c.want || len(created(made)) != map[bool]int{true: 1}[c.want == ""] {
			t.Errorf("%s: %q with %v (%v), want %q", name, got, created(made), reasons(made), c.want)
		}
	}
}
