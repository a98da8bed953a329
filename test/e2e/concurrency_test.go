// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// limits sets a Repository's concurrency_limit; 0 removes it.
func (w *world) limits(namespace, name string, limit int) {
	w.t.Helper()
	patch := fmt.Sprintf(`{"spec":{"concurrency_limit":%d}}`, limit)
	if limit == 0 {
		patch = `{"spec":{"concurrency_limit":null}}`
	}
	_, err := w.Plumbline.PipelinesascodeV1alpha1().Repositories(namespace).Patch(w.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	w.must(err)
}

// queue waits until the Repository shows how many run and how many wait.
func (w *world) queue(running, queued int) {
	w.t.Helper()
	want := fmt.Sprint(running, " running, ", queued, " queued")
	w.eventually(afterFault, want, func() error {
		r, err := w.Plumbline.PipelinesascodeV1alpha1().Repositories(w.ci).Get(w.ctx, "app", metav1.GetOptions{})
		if err != nil || r.Status.Running == nil || fmt.Sprint(*r.Status.Running, " running, ", *r.Status.Queued, " queued") != want {
			return fmt.Errorf("%w %+v", err, r.Status.Queues)
		}
		return nil
	})
}

// eventAt is the event of a commit.
func (w *world) eventAt(sha string) v1alpha1.GitEvent {
	w.t.Helper()
	for _, event := range w.events() {
		if event.Spec.SHA == sha {
			return event
		}
	}
	w.t.Fatalf("there is no event of %s", sha)
	return v1alpha1.GitEvent{}
}

// spectator sees the PipelineRuns of a world at every resource version.
type spectator struct {
	mu      sync.Mutex
	running map[string]bool
	most    int      // that ran at once since the last look
	order   []string // "<pipeline> <commit>" as they were created
}

func (w *world) watchesRuns() *spectator {
	w.t.Helper()
	list, err := w.Tekton.TektonV1().PipelineRuns(w.ci).List(w.ctx, metav1.ListOptions{})
	w.must(err)
	changes, err := w.Tekton.TektonV1().PipelineRuns(w.ci).Watch(w.ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	w.must(err)
	s := &spectator{running: map[string]bool{}}
	w.t.Cleanup(changes.Stop)
	go func() {
		for change := range changes.ResultChan() {
			if run, ok := change.Object.(*pipelinev1.PipelineRun); ok {
				s.saw(change.Type, run)
			}
		}
	}()
	return s
}

func (s *spectator) saw(change watch.EventType, run *pipelinev1.PipelineRun) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if change == watch.Added {
		s.order = append(s.order, run.Annotations[pipelinesascode.OriginalPRName]+" "+run.Annotations[pipelinesascode.SHA])
	}
	delete(s.running, run.Name)
	if change != watch.Deleted && !run.IsDone() && !run.IsPending() {
		s.running[run.Name] = true
	}
	s.most = max(s.most, len(s.running))
}

// look returns the most that ran at once since the last look, those that run, and in which order
// runs were created.
func (s *spectator) look() (most int, running, order []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.running {
		running = append(running, name)
	}
	most, s.most = s.most, len(s.running)
	return most, running, slices.Clone(s.order)
}

// one waits until something runs that has not ended yet, and lets it go on.
func (w *world) one(s *spectator, before map[string]bool) {
	w.t.Helper()
	var name string
	w.eventually(afterFault, "another run has a slot", func() error {
		_, running, _ := s.look()
		for _, name = range running {
			if !before[name] {
				return nil
			}
		}
		return fmt.Errorf("%v run, of which all are known", running)
	})
	before[name] = true
	w.must(w.Cluster.Release(w.ctx, w.ci, name))
}

// Issue 15, item 1: never more run than the limit, at any resource version, whoever is killed and
// however the limit changes; first come, first served, those of one event by name; each runs once,
// and nobody waits for ever.
func TestRunsWaitForASlot(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 2}, waitForASlot)
}

func waitForASlot(t *testing.T, w *world) {
	const pushes = 4
	w.limits(w.ci, "app", 1)
	s, known, want := w.watchesRuns(), map[string]bool{}, []string{}
	var shas []string
	for i := range pushes {
		sha, d := w.push(map[string]string{
			".tekton/a.yaml": pipeline("test-10", "push", held), ".tekton/b.yaml": pipeline("test-2", "push", held), "i": fmt.Sprint(i),
		})
		w.deliver(d, http.StatusAccepted)
		w.queue(1, 2*i+1)
		shas, want = append(shas, sha), append(want, "test-2 "+sha, "test-10 "+sha)
		w.nextSecond() // the queue is ordered by when the API server stored each delivery
	}
	w.checkReaches(shas[0], checkName("test-2"), "in_progress", soon)
	first := w.eventAt(shas[0])
	w.eventually(soon, "the check says its place and who has the slot", func() error {
		waits, _ := w.current(shas[0], checkName("test-10"))
		if waits.Status != "queued" || !waits.Tells("place 1 in the queue") || !waits.Tells(runOf(&first, "test-2")) {
			return fmt.Errorf("%s %q %s", waits.Status, waits.Title, waits.Text)
		}
		return nil
	})
	w.one(s, known)
	w.queue(1, 2*pushes-2)
	w.must(w.controllers[0].Kill())
	w.one(s, known)
	w.must(w.controllers[0].Start(w.ctx))
	w.must(w.controllers[1].Kill())
	w.one(s, known)
	w.must(w.controllers[1].Start(w.ctx))
	w.queue(1, 2*pushes-4)
	if most, _, _ := s.look(); most > 1 {
		t.Errorf("%d ran at once, at most 1 may", most)
	}
	w.limits(w.ci, "app", 2)
	w.queue(2, 2*pushes-5)
	w.limits(w.ci, "app", 1)
	for range 2*pushes - 3 {
		w.one(s, known)
	}
	w.settled(afterFault)
	w.queue(0, 0)
	most, _, order := s.look()
	if most > 2 {
		t.Errorf("%d ran at once, at most 2 may", most)
	}
	for i, run := range want { // two that get their slots at once may be created in either order
		if near := order[max(0, min(i-1, len(order))):min(i+2, len(order))]; slices.Contains(near, run) && len(order) == len(want) {
			continue
		}
		t.Fatalf("they were created in the order\n%s\nwant\n%s", strings.Join(order, "\n"), strings.Join(want, "\n"))
	}
	for _, sha := range shas {
		w.oneCheck(sha, checkName("test-2"))
		w.neverFailed(sha)
	}
}
