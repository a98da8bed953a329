// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
)

const (
	cancelsOlder = pipelinesascode.CancelInProgress + `: "true"`
)

// goOn are the commits whose runs of a pipeline have neither ended nor been told to.
func (w *world) goOn(pipeline string) (commits []string) {
	for _, run := range w.runs() {
		if !run.IsDone() && run.Spec.Status == "" && run.Annotations[pipelinesascode.OriginalPRName] == pipeline {
			commits = append(commits, run.Labels[pipelinesascode.SHA])
		}
	}
	return commits
}

// B13: of two pushes the run of the newer commit stays, whether its delivery comes first, second,
// at the same moment at another replica, or twice; the older one ends or is not created. Also with
// a limit of one run, which the older one has. Another pipeline, whose author has written what is
// neither true nor false, goes on.
func TestB13TheNewestRunStays(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 2, controllers: 2}, func(t *testing.T, w *world) {
		var newest string
		for round, post := range []func(first, second delivery){
			func(first, second delivery) { w.posts(first, second) },
			func(first, second delivery) { w.posts(second, first) },
			w.together, w.together,
			func(first, second delivery) { w.posts(first, second) },
			func(first, second delivery) { w.posts(second, first) },
		} {
			if round == 3 {
				w.limits(w.ci, "app", 1)
			}
			files := map[string]string{".tekton/a.yaml": pipeline("build", "push", held, cancelsOlder), "round": fmt.Sprint(round)}
			older, first := w.push(files)
			files["round"] += " again"
			var second delivery
			newest, second = w.push(files)
			post(first, second)
			w.posts(second)
			w.eventually(afterFault, fmt.Sprintf("round %d: the run of %s alone goes on", round, newest), func() error {
				if got := w.goOn("build"); !slices.Equal(got, []string{newest}) {
					return fmt.Errorf("those of %q, the older one is %s", got, older)
				}
				return nil
			})
			w.checkReaches(newest, checkName("build"), "in_progress", soon)
			if check, found := w.current(older, checkName("build")); found && check.Conclusion != "" && !check.Tells("superseded by") {
				t.Errorf("round %d: the check does not say what took its place: %s", round, check.Text)
			}
		}
		w.limits(w.ci, "app", 0)
		w.release(w.created(newest))
		w.checkReaches(newest, checkName("build"), "success", soon)
		w.settled(afterFault)
	})
}

// posts delivers one after the other.
func (w *world) posts(deliveries ...delivery) {
	w.t.Helper()
	for _, d := range deliveries {
		if got, body := w.post(w.receivers[0], d); got/100 != 2 {
			w.t.Fatalf("delivery answered %d %s", got, body)
		}
	}
}

// together delivers two at the same moment to two replicas.
func (w *world) together(first, second delivery) {
	w.t.Helper()
	var both errgroup.Group
	for i, d := range []delivery{first, second} {
		both.Go(func() error {
			got, body, err := w.git.deliver(w.ctx, w.receivers[i].URL, d)
			if err == nil && got != http.StatusAccepted {
				err = fmt.Errorf("answered %d %s", got, body)
			}
			return err
		})
	}
	w.must(both.Wait())
}
