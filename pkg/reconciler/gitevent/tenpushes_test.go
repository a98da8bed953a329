// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
)

// Ten pushes, to a branch or to a pull request, are recorded in any order and reconciled in any
// order, also by processes that are killed after each step. The newest run goes on, and every other
// one was told to stop or never created.
func TestOnlyTheNewestOfTenPushesRuns(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 15))
			w := pushes(t, 10, "'true'")
			w.forgets = seed%3 == 0
			if seed%2 == 0 {
				w.asPulls()
			}
			all := w.events()
			for _, e := range all[1:] {
				w.must(w.own.Tracker().Delete(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), system, e.Name))
			}
			recorded := []string{all[0].Name}
			for _, i := range r.Perm(9) {
				all[i+1].Spec.ReceivedAt = metav1.NewTime(w.clock.Now())
				w.must(w.own.Tracker().Add(&all[i+1]))
				recorded = append(recorded, all[i+1].Name)
				for range r.IntN(5) {
					_, _ = w.reconcileEvent(recorded[r.IntN(len(recorded))])
				}
				w.advance(time.Duration(r.IntN(3)) * time.Second)
			}
			for range 8 {
				for _, name := range recorded {
					_, _ = w.reconcileEvent(name)
				}
				w.advance(10 * time.Second)
			}
			for _, e := range w.events() {
				run := e.Status.Runs[0]
				ended := run.UID == "" && run.Result != nil ||
					w.runOf(run.Name).Spec.Status == pipelinev1.PipelineRunSpecStatusCancelledRunFinally
				if newest := e.Spec.SHA == commit(10); ended == newest {
					t.Errorf("%s: ended %t, %+v", e.Name, ended, run)
				}
			}
		})
	}
}

// asPulls turns the pushes into pushes to the branch of a pull request.
func (w *env) asPulls() {
	w.t.Helper()
	w.git.files = []git.File{
		annotated("hello", "on-event: pull_request", "on-target-branch: main", "cancel-in-progress: 'true'"),
	}
	w.git.canWrite = func(string) (bool, error) { return true, nil }
	for _, e := range w.events() {
		asPull(&e, "synchronize", w.clock.Now(), w.clock.Now())
		e.Spec.BaseRef = "main"
		w.must(w.own.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), next(&e), system))
	}
}
