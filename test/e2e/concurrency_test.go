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

// setLimit sets a Repository's concurrency_limit; 0 removes it.
func (env *environment) setLimit(namespace, name string, limit int) {
	env.t.Helper()
	patch := fmt.Sprintf(`{"spec":{"concurrency_limit":%d}}`, limit)
	if limit == 0 {
		patch = `{"spec":{"concurrency_limit":null}}`
	}
	env.must(errOf(env.Plumbline.PipelinesascodeV1alpha1().Repositories(namespace).Patch(env.ctx, name,
		types.MergePatchType, []byte(patch), metav1.PatchOptions{})))
}

// awaitQueue waits until the Repository's status shows how many runs have a slot and how many
// wait.
func (env *environment) awaitQueue(running, queued int) {
	env.t.Helper()
	want := fmt.Sprint(running, " running, ", queued, " queued")
	env.eventually(afterFault, want, func() error {
		r, err := env.Plumbline.PipelinesascodeV1alpha1().Repositories(env.ci).Get(env.ctx, "app", metav1.GetOptions{})
		if err != nil || r.Status.Running == nil ||
			fmt.Sprint(*r.Status.Running, " running, ", *r.Status.Queued, " queued") != want {
			return fmt.Errorf("%w %+v", err, r.Status.Queues)
		}
		return nil
	})
}

// eventAt returns the event of a commit.
func (env *environment) eventAt(sha string) v1alpha1.GitEvent {
	env.t.Helper()
	for _, event := range env.events() {
		if event.Spec.SHA == sha {
			return event
		}
	}
	env.t.Fatalf("there is no event of %s", sha)
	return v1alpha1.GitEvent{}
}

// runWatcher sees the environment's PipelineRuns at every resource version.
type runWatcher struct {
	mu      sync.Mutex
	running map[string]bool
	most    int      // at the same time since the last snapshot
	order   []string // "<pipeline> <commit>" in the order of creation
}

func (env *environment) newRunWatcher() *runWatcher {
	env.t.Helper()
	list, err := env.Tekton.TektonV1().PipelineRuns(env.ci).List(env.ctx, metav1.ListOptions{})
	env.must(err)
	changes, err := env.Tekton.TektonV1().PipelineRuns(env.ci).Watch(env.ctx,
		metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	env.must(err)
	s := &runWatcher{running: map[string]bool{}}
	env.t.Cleanup(changes.Stop)
	go func() {
		for change := range changes.ResultChan() {
			if run, ok := change.Object.(*pipelinev1.PipelineRun); ok {
				s.observe(change.Type, run)
			}
		}
	}()
	return s
}

func (s *runWatcher) observe(change watch.EventType, run *pipelinev1.PipelineRun) {
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

// snapshot returns the most runs at the same time since the last snapshot, the current ones, and
// the order of creation.
func (s *runWatcher) snapshot() (most int, running, order []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.running {
		running = append(running, name)
	}
	most, s.most = s.most, len(s.running)
	return most, running, slices.Clone(s.order)
}

// awaitSeen waits until the watch has shown so many PipelineRuns: it may be behind the checks.
func (env *environment) awaitSeen(s *runWatcher, n int) {
	env.t.Helper()
	env.eventually(soon, fmt.Sprint("the watch has shown ", n, " PipelineRuns"), func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.order) < n {
			return fmt.Errorf("%d: %v", len(s.order), s.order)
		}
		return nil
	})
}

// releaseOne waits for an unfinished run and releases it.
func (env *environment) releaseOne(s *runWatcher, before map[string]bool) {
	env.t.Helper()
	var name string
	env.eventually(afterFault, "another run has a slot", func() error {
		_, running, _ := s.snapshot()
		for _, name = range running {
			if !before[name] {
				return nil
			}
		}
		return fmt.Errorf("%v run, of which all are known", running)
	})
	before[name] = true
	env.must(env.Cluster.Release(env.ctx, env.ci, name))
}

// The number of runs never exceeds the limit, at any resource version, while processes are killed
// and the limit changes. Runs start in the order of their events, those of one event by name. Each
// runs once, and each starts in the end.
func TestRunsWaitForSlot(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 2}, runsWaitForSlot)
}

func runsWaitForSlot(t *testing.T, env *environment) {
	const pushes = 4
	env.setLimit(env.ci, "app", 1)
	s, known, want := env.newRunWatcher(), map[string]bool{}, []string{}
	var shas []string
	for i := range pushes {
		sha, d := env.push(map[string]string{
			".tekton/a.yaml": pipeline("test-10", "push", held), ".tekton/b.yaml": pipeline("test-2", "push", held),
			"i": fmt.Sprint(i),
		})
		env.deliver(d, http.StatusAccepted)
		env.awaitQueue(1, 2*i+1)
		shas, want = append(shas, sha), append(want, "test-2 "+sha, "test-10 "+sha)
		env.waitForNextSecond() // the queue is ordered by when the API server stored each delivery
	}
	env.awaitCheck(shas[0], checkName("test-2"), "in_progress", soon)
	first := env.eventAt(shas[0])
	env.eventually(soon, "the check says its place and who has the slot", func() error {
		waits, _ := env.currentCheck(shas[0], checkName("test-10"))
		if waits.Status != "queued" || !waits.Tells("position 1 in the queue") || !waits.Tells(runName(&first, "test-2")) {
			return fmt.Errorf("%s %q %s", waits.Status, waits.Title, waits.Text)
		}
		return nil
	})
	env.releaseOne(s, known)
	env.awaitQueue(1, 2*pushes-2)
	env.must(env.controllers[0].Kill())
	env.releaseOne(s, known)
	env.must(env.controllers[0].Start(env.ctx))
	env.must(env.controllers[1].Kill())
	env.releaseOne(s, known)
	env.must(env.controllers[1].Start(env.ctx))
	env.awaitQueue(1, 2*pushes-4)
	if most, _, _ := s.snapshot(); most > 1 {
		t.Errorf("%d ran at once, at most 1 may", most)
	}
	env.setLimit(env.ci, "app", 2)
	env.awaitQueue(2, 2*pushes-5)
	env.setLimit(env.ci, "app", 1)
	for range 2*pushes - 3 {
		env.releaseOne(s, known)
	}
	env.awaitAllSettled(afterFault)
	env.awaitQueue(0, 0)
	env.awaitSeen(s, len(want))
	most, _, order := s.snapshot()
	if most > 2 {
		t.Errorf("%d ran at once, at most 2 may", most)
	}
	for i, run := range want { // two runs that get their slots at the same time may be created in either order
		if near := order[max(0, min(i-1, len(order))):min(i+2, len(order))]; slices.Contains(near, run) &&
			len(order) == len(want) {
			continue
		}
		t.Fatalf("they were created in the order\n%s\nwant\n%s", strings.Join(order, "\n"), strings.Join(want, "\n"))
	}
	for _, sha := range shas {
		env.requireOneCheck(sha, checkName("test-2"))
		env.requireNoFailure(sha)
	}
}
