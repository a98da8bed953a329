// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// ADR 26: a check is looked for unless every post of it was this process's own and was answered.
func TestOnlyPossibleDuplicatesAreLookedUp(t *testing.T) {
	t.Parallel()
	// waiting is a check that is shown: its run waits for the cluster.
	waiting := func(t *testing.T) (*env, func()) {
		w := newEnv(t, helloFile("hello"))
		w.hook = func(_ int, call string) outcome {
			if call == "create pipelineruns" {
				return outcome{err: errRefused}
			}
			return outcome{}
		}
		r := w.reconciler()
		reconcile := func() {
			w.clock.SetTime(w.clock.Now().Add(time.Minute))
			r.process.Settings = w.store()
			_ = r.Reconcile(t.Context(), system+"/push-1")
		}
		reconcile()
		if want := []bool{true}; !slices.Equal(w.git.soles, want) {
			t.Fatalf("the first post: %v, want %v", w.git.soles, want)
		}
		return w, reconcile
	}
	is := func(t *testing.T, w *env, want ...bool) {
		t.Helper()
		if !slices.Equal(w.git.soles, want) || len(w.git.checks) != 1 {
			t.Errorf("%v, %d checks, want %v and one", w.git.soles, len(w.git.checks), want)
		}
	}
	t.Run("other events post it, too", func(t *testing.T) {
		t.Parallel()
		w := newEnv(t)
		w.git.canWrite = func(string) (bool, error) { return false, nil }
		w.fromFork()
		r := w.reconciler()
		for range 2 {
			_ = r.Reconcile(t.Context(), system+"/push-1")
		}
		is(t, w, false)
	})
	t.Run("one process", func(t *testing.T) {
		t.Parallel()
		w, reconcile := waiting(t)
		w.hook = nil
		reconcile()
		w.finishRuns(corev1.ConditionTrue)
		reconcile()
		is(t, w, true, true, true)
	})
	t.Run("another process goes on, and the first one again", func(t *testing.T) {
		t.Parallel()
		w, reconcile := waiting(t)
		w.hook = nil
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		_, _ = w.reconcile()
		w.finishRuns(corev1.ConditionTrue)
		reconcile() // what it knows is not the newest version: it sends nothing, and reads the event the next time
		is(t, w, true, false)
		reconcile()
		is(t, w, true, false, false)
	})
	t.Run("the answer was lost", func(t *testing.T) {
		t.Parallel()
		w, reconcile := waiting(t)
		w.hook = func(_ int, call string) outcome {
			if call == "put check in_progress" {
				f := fault.Transientf("Timeout", "no answer in time")
				f.Unknown = true
				return outcome{err: f, apply: true}
			}
			return outcome{}
		}
		reconcile()
		w.hook = nil
		w.finishRuns(corev1.ConditionTrue)
		reconcile()
		is(t, w, true, true, false)
	})
	t.Run("what has ended is not remembered", func(t *testing.T) { // it would take the place of what goes on
		t.Parallel()
		w, reconcile := waiting(t)
		w.hook = always("patch pipelineruns", errDenied) // it stays open
		reconcile()
		w.finishRuns(corev1.ConditionTrue)
		reconcile()
		w.settings = map[string]string{"tekton-dashboard-url": "https://elsewhere.example"}
		reconcile()
		is(t, w, true, true, true, false)
	})
	t.Run("killed between the intent and the post", func(t *testing.T) {
		t.Parallel()
		w := newEnv(t, helloFile("hello"))
		w.hook = func(_ int, call string) outcome { return outcome{kill: call == "put check in_progress", apply: true} }
		if killed, _ := w.reconcile(); !killed {
			t.Fatal("it was not killed")
		}
		w.hook = nil
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		_, _ = w.reconcile()
		is(t, w, true, false)
	})
}
