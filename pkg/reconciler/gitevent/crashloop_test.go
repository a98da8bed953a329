// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/planning"
)

// makeOlder makes the event one that existed before this process led.
func (w *env) makeOlder() {
	w.edit(func(e *v1alpha1.GitEvent) { e.CreationTimestamp = metav1.NewTime(w.clock.Now().Add(-time.Hour)) })
}

// killAfter ends the process right after the attempt was recorded, the first n times.
func (w *env) killAfter(n int) {
	w.hook = func(_ int, call string) outcome {
		if call == "update gitevents/status" && n > 0 {
			n--
			return outcome{kill: true, apply: true}
		}
		return outcome{}
	}
}

// S2: an event whose planning crashes one process after the other is parked after five recorded
// attempts.
func TestEventThatCrashesTheControllerIsParked(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.makeOlder()
	w.killAfter(planning.MaxUnfinished)
	for n := range int32(planning.MaxUnfinished) {
		if killed, _ := w.reconcile(); !killed {
			t.Fatalf("attempt %d does not kill the process", n+1)
		}
		if e := w.event(); e.Status.Begun != n+1 || e.Settled() {
			t.Fatalf("after %d kills %d beginnings are recorded", n+1, e.Status.Begun)
		}
	}
	for range 3 {
		if killed, _ := w.reconcile(); killed {
			t.Fatal("it is tried once more")
		}
	}
	e := w.event()
	if !e.Settled() || e.Status.Disposition != v1alpha1.DispositionRefused ||
		e.Status.Plan.Reason != planning.ReasonParked {
		t.Errorf("status %+v, want it parked", e.Status)
	}
	if len(w.git.writes) != 0 || len(w.runs()) != 0 {
		t.Errorf("checks %v and %d runs, want none", w.git.writes, len(w.runs()))
	}
}

// A process that ended for another reason costs an event nothing: its next attempt finishes, and it
// runs.
func TestEventPlannedDuringACrashGoesOn(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.makeOlder()
	w.killAfter(planning.MaxUnfinished - 1)
	for range planning.MaxUnfinished - 1 {
		_, _ = w.reconcile()
	}
	w.hook = nil
	w.settle(corev1.ConditionTrue)
	w.wantSuccess()
}

// An attempt that ends with a wait is no crash, and leaves the recorded crashes as they are.
func TestFinishedAttemptIsNotCounted(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.makeOlder()
	w.killAfter(2)
	for range 2 {
		_, _ = w.reconcile()
	}
	w.git.canWrite = func(string) (bool, error) { panic("poison") }
	w.fromFork()
	if _, err := w.reconcile(); err == nil {
		t.Fatal("a panic is not requeued")
	}
	if e := w.event(); e.Status.Begun != 2 || e.Status.Panics != 1 {
		t.Errorf("%d beginnings and %d panics, want 2 and 1", e.Status.Begun, e.Status.Panics)
	}
}

// An event that arrives while this process leads costs no extra write.
func TestNewEventRecordsNoAttempt(t *testing.T) {
	t.Parallel()
	calls := func(created time.Duration) int {
		w := newEnv(t, []git.File{helloFile("hello")}...)
		w.edit(func(e *v1alpha1.GitEvent) { e.CreationTimestamp = metav1.NewTime(w.clock.Now().Add(created)) })
		n := 0
		w.hook = func(_ int, call string) outcome {
			if strings.HasPrefix(call, "update gitevents/status") {
				n++
			}
			return outcome{}
		}
		_, _ = w.reconcile()
		return n
	}
	if fresh, inherited := calls(time.Hour), calls(-time.Hour); inherited != fresh+1 || fresh == 0 {
		t.Errorf("%d writes for a new event, %d for an inherited one, want one more", fresh, inherited)
	}
}

// A suspect whose Git service hangs is requeued at once, and would always be planned before the
// others that wait.
func TestSuspectLetsOthersGoFirst(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.makeOlder()
	w.killAfter(1)
	_, _ = w.reconcile()
	w.hook = nil
	r, asked := w.uncounted(w.reconciler), 0
	w.git.err = fault.Transientf(fault.ReasonTimeout, "it hangs")
	w.git.complete = func(e *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
		asked++
		w.advance(20 * time.Second)
		return nil, w.git.err
	}
	for _, want := range []struct {
		after time.Duration
		asked int
	}{{0, 1}, {19 * time.Second, 1}, {2 * time.Second, 2}} {
		w.advance(want.after)
		_ = r.Reconcile(t.Context(), system+"/push-1")
		if asked != want.asked {
			t.Fatalf("%v later it was asked for %d times, want %d", want.after, asked, want.asked)
		}
	}
}
