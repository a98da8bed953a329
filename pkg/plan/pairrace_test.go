// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// A push that does not wait any more and a pull request whose event has just arrived are planned by
// two workers: whichever is written first, the other one finds out.
func TestOfAPushAndALatePullRequestOneRunsThePipeline(t *testing.T) {
	t.Parallel()
	undecidedPush := pushed(0, "")
	undecidedPush.Event.Status = v1alpha1.GitEventStatus{}
	for _, first := range []string{"push", "pull"} {
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			w := &world{files: []git.File{both("a")}, writers: "author", pulls: []git.Pull{ownPull(nil)}}
			p := (&pair{world: w, now: 400}).knows(pulled4("", nil), undecidedPush)
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

// The clocks of receivers and of controllers differ: a push that may run at this moment reads
// again, also if it does not do so yet by the clock of whoever plans the pull request. One that
// still waits is left alone.
func TestAPushThatMayRunAtThisMomentReadsAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		received, now int // seconds after it was stored
		outdated      bool
	}{
		"it waits":                                   {0, 200, false},
		"it does not wait any more":                  {0, 300, true},
		"nor by the clock of another controller":     {0, 290, true},
		"its receiver is ahead of the API server":    {120, 310, true},
		"its receiver is behind, and it still waits": {-120, 200, false},
	} {
		waiting := pushed(0, "")
		waiting.Event.Status, waiting.Event.CreationTimestamp = v1alpha1.GitEventStatus{}, *second(0)
		waiting.Event.Spec.ReceivedAt = *second(c.received)
		in := ownEventOf4()
		in.Event.Spec.Actor = "author"
		p := (&pair{world: &world{files: []git.File{both("a")}, writers: "author"}, now: c.now}).knows(waiting)
		if made := p.make(t, in); len(p.outdated) > 0 != c.outdated || len(created(made)) != 1 {
			t.Errorf("%s: outdated %v, runs %v", name, p.outdated, created(made))
		}
	}
}
