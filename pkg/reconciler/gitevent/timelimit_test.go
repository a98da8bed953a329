// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// many returns n pipelines with a path filter each.
func many(runs int) []git.File {
	var files []git.File
	for i := range runs {
		files = append(files, annotated(fmt.Sprintf("p%03d", i), fmt.Sprintf("on-path-change: '[services/%d/**, go.mod]'", i),
			"task: tasks/build.yaml"))
	}
	return files
}

// An event with more runs than one reconcile has time for continues where it was. What was done is
// recorded before the deadline, so that nothing is done twice.
func TestManyRunsSpanSeveralReconciles(t *testing.T) {
	t.Parallel()
	const runs = 60
	w := newEnv(t, many(runs)...)
	w.forgets = true
	w.git.changed = git.Changes{Modified: []string{"go.mod"}}
	w.git.tree = map[string]string{"tasks/build.yaml": taskText("build")}
	created := 0
	w.hook = func(_ int, call string) outcome {
		if call == "create pipelineruns" {
			created++
		}
		if strings.HasPrefix(call, "put check") ||
			slices.Contains([]string{"create pipelineruns", "list taskruns", "patch pipelineruns", "patch secrets"}, call) {
			// a cluster where each of 60 takes a second, and a Git service that does
			w.clock.SetTime(w.clock.Now().Add(time.Second))
		}
		if call == "patch pipelineruns" && created < runs {
			return outcome{err: errRefused} // so that all of them have to be patched at once
		}
		return outcome{}
	}
	reconciles := 0
	for ; !w.event().Settled() && reconciles < 100; reconciles++ {
		began := w.clock.Now()
		if _, err := w.reconcile(); err != nil && strings.Contains(err.Error(), "another process") {
			t.Fatalf("reconcile %d takes a full turn for a pause: %v", reconciles, err)
		}
		if took := w.clock.Since(began); took >= reconcileDeadline {
			t.Fatalf("reconcile %d took %s, more than it may", reconciles, took)
		}
		for _, check := range w.git.writes {
			if check.State == status.Queued {
				t.Fatalf("%s was shown as %q while its turn was about to come", check.Name, check.Title)
			}
		}
		if got := len(w.event().Status.Checks); got > created {
			t.Fatalf("%d checks are about to be posted, but %d runs are created", got, created)
		}
		// each reconcile here is another process, whose late reports are waited for
		w.clock.SetTime(w.clock.Now().Add(10 * time.Second))
		if created == runs {
			w.uncounted(func() *Reconciler { w.finishRuns(corev1.ConditionTrue); return nil })
		}
	}
	if !w.event().Settled() || reconciles < 5 {
		t.Fatalf("after %d reconciles: %+v, want it settled after some", reconciles, w.event().Status.Conditions)
	}
	for _, call := range []string{"create secrets", "create pipelineruns", "list taskruns"} {
		if got := w.count(call); got != runs {
			t.Errorf("%d calls %s, want %d", got, call, runs)
		}
	}
	if len(w.git.checks) != runs || len(w.git.writes) > 3*runs || w.secrets() != 1 {
		t.Errorf("%d checks after %d writes, %d secrets left; want %d, at most 3 writes each, and the App's secret",
			len(w.git.checks), len(w.git.writes), w.secrets(), runs)
	}
}

// A run whose creation takes long and fails does not use the time of the others.
func TestSlowFailureDelaysNoOtherRun(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("a"), helloFile("b"))
	creates := 0
	w.hook = func(_ int, call string) outcome {
		if call != "create pipelineruns" {
			return outcome{}
		}
		if creates++; len(w.event().Status.Runs) == 2 && creates%2 == 1 {
			w.clock.SetTime(w.clock.Now().Add(attempt.LongLimit))
			return outcome{err: errRefused}
		}
		return outcome{}
	}
	_, _ = w.reconcile()
	if len(w.runs()) != 0 {
		t.Fatalf("%d runs, want none: the first one's create took the whole turn", len(w.runs()))
	}
	_, _ = w.reconcile()
	if runs := w.runs(); len(runs) == 0 || runs[0].Annotations["pipelinesascode.tekton.dev/original-prname"] != "b" {
		t.Errorf("%d runs, want that of b, which nothing is known against", len(runs))
	}
}

// The same for patches, of which none is known to fail by itself.
func TestSlowPatchRefusalDelaysNoOtherRun(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("a"), helloFile("b"))
	w.tekton.PrependReactor("patch", "pipelineruns", func(action clienttesting.Action) (bool, k8sruntime.Object, error) {
		if patch, ok := action.(clienttesting.PatchAction); !ok || !strings.HasPrefix(patch.GetName(), "a-") {
			return false, nil, nil
		}
		w.clock.SetTime(w.clock.Now().Add(attempt.LongLimit))
		return true, nil, errRefused
	})
	for range 50 { // where it begins is left to chance
		_, _ = w.reconcile()
		for _, run := range w.runs() {
			if run.Labels[pipelinesascode.CheckRunID] != "" {
				return
			}
		}
	}
	t.Error("b was never patched")
}

// 200 PipelineRuns with path filters need one list of changed files, one read of .tekton,
// and one of the file that all of them refer to.
func TestManyPathFiltersCostOneList(t *testing.T) {
	t.Parallel()
	w := newEnv(t, many(200)...)
	w.git.changed = git.Changes{Modified: []string{"go.mod"}}
	w.git.tree = map[string]string{"tasks/build.yaml": taskText("build")}
	w.settle(corev1.ConditionTrue)
	if got := len(w.runs()); got != 200 {
		t.Fatalf("%d runs, want 200", got)
	}
	if w.git.changedCalls != 1 || w.git.pullsCalls != 1 || len(w.git.read) != 2 {
		t.Errorf("%d lists of changed files, %d look-ups of pull requests, reads %v; want one, one, and one of .tekton and of the task", w.git.changedCalls, w.git.pullsCalls, w.git.read)
	}
}
