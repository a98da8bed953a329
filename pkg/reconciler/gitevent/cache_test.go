// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/reconciler"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// An event that appears while a process leads is reconciled without a read, and its planning
// attempt is not recorded. An event that existed before, or that appeared while the process did not
// lead, is read.
func TestNewEventIsNotRead(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		listed, demoted bool
		want            bool
	}{"new": {want: true}, "there before": {listed: true}, "another leads": {demoted: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, helloFile("hello"))
			e := w.event()
			e.CreationTimestamp = metav1.NewTime(w.clock.Now())
			w.replaceEvent(e)
			r := w.process()
			if !test.listed {
				w.must(w.caches.events.Replace(nil, ""))
			}
			if test.demoted {
				r.Demote(reconciler.UniversalBucket())
			}
			r.Appeared(w.event())
			if test.demoted { // and leads again
				_ = r.Promote(reconciler.UniversalBucket(), nil)
			}
			w.fill(w.caches)
			w.calls = nil
			_ = r.Reconcile(t.Context(), system+"/push-1")
			if read := slices.Contains(w.calls, "get gitevents"); read == test.want {
				t.Errorf("read: %t, calls %v", read, w.calls)
			}
			if first := r.state.Cache.Exclusive("push-1"); first != test.want {
				t.Errorf("nobody else can have worked on it: %t, want %t", first, test.want)
			}
		})
	}
}

// H6: a process goes on with an old version of an event long after it has written it, while another
// process has finished the event. It sends, patches and deletes nothing.
func TestStaleProcessDoesNothing(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	_, _ = w.reconcile()
	w.finishRuns(corev1.ConditionTrue)
	r, listed := w.process(), w.caches
	w.alive = nil // another process
	w.settle(corev1.ConditionTrue)
	w.must(listed.events.Replace([]any{
		&v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "push-1", UID: "event-uid"}},
	}, ""))
	sent := len(w.git.writes)
	w.calls = nil
	w.advance(time.Hour)
	if err := r.Reconcile(t.Context(), system+"/push-1"); err == nil {
		t.Error("no conflict")
	}
	for _, call := range w.calls {
		if !slices.Contains([]string{"get pipelineruns", "list taskruns", "update gitevents/status", "get gitevents",
			"get secrets"}, call) {
			t.Errorf("calls %v", w.calls)
		}
	}
	if len(w.git.writes) != sent {
		t.Errorf("%d reports of an event that is over", len(w.git.writes)-sent)
	}
}

// Somebody deletes an event and its dependents in the foreground: it exists until those are gone.
// Nothing is started for it any more, however often it is reconciled.
func TestEventBeingDeletedIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.edit(func(e *v1alpha1.GitEvent) {
		now := metav1.NewTime(w.clock.Now())
		e.DeletionTimestamp, e.Finalizers = &now, []string{metav1.FinalizerDeleteDependents}
	})
	for range 3 {
		_, _ = w.reconcile()
	}
	if len(w.runs()) != 0 || len(w.git.writes) != 0 {
		t.Errorf("%d runs, %d reports of an event that is being deleted", len(w.runs()), len(w.git.writes))
	}
}

// A process that is shut down releases an event's lease although a reconcile of it hangs. When that
// continues a moment later, it reports nothing and creates no PipelineRun, although its version was
// confirmed a moment ago. The next process does all of it.
func TestReleasedLeaseStartsNothing(t *testing.T) {
	t.Parallel()
	free := newEnv(t, helloFile("hello"))
	_, _ = free.reconcile()
	for k, call := range free.calls {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, helloFile("hello"))
			r := w.uncounted(w.process)
			given := false
			r.state.Holds = func(string) bool { return !given }
			w.hook = func(n int, call string) outcome {
				if given && (strings.HasPrefix(call, "put ") ||
					strings.HasSuffix(call, " pipelineruns") && !strings.HasPrefix(call, "get ")) {
					t.Errorf("after %s it has made the call %s", free.calls[k], call)
				}
				given = given || n == k+1
				return outcome{}
			}
			_, _ = w.reconcile()
			w.hook = nil
			w.kill()
			w.settle(corev1.ConditionTrue)
			w.wantSuccess()
		})
	}
}
