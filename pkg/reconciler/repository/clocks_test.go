// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// onItsWay is a line of two of which the first was cancelled while its create may be on its way: it
// has its slot for two minutes more.
func onItsWay(t *testing.T) *world {
	t.Helper()
	w := line(t, 1, 2)
	w.wantQueue(1, 1, "r0")
	w.ran(0, func(run *v1alpha1.Run) { run.Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeCancelled} })
	w.wantQueue(1, 1, "r0")
	return w
}

// Another process takes over, whose clock is ahead by all the time that a create may take. It knows
// nothing of when that began: the slot is free when its own two minutes are over.
func TestACreateMayBeOnItsWayByEachClock(t *testing.T) {
	w := onItsWay(t)
	w.restart()
	w.advance(inFlight)
	w.wantQueue(1, 1, "r0")
	w.advance(inFlight - time.Second)
	w.wantQueue(1, 1, "r0")
	w.advance(time.Second)
	w.wantQueue(1, 0, "r1")
	if len(w.r.unseen.times) != 0 {
		t.Errorf("it remembers %v", w.r.unseen.times)
	}
}

// A process does not lead for a while, in which the run is planned anew and cancelled again: it has
// two minutes again.
func TestWhatAProcessKnewOfASlotBefore(t *testing.T) {
	w := onItsWay(t)
	w.advance(inFlight)
	changed := w.repository("one", "app")
	at := metav1.NewTime(w.clock.Now().Add(inFlight))
	changed.Status.Queues[0].Slots[0].FreeAt = &at
	w.must(w.client.Tracker().Update(pacv1alpha1.SchemeGroupVersion.WithResource("repositories"), changed, "one"))
	w.wantQueue(1, 1, "r0")
	w.advance(inFlight)
	w.wantQueue(1, 0, "r1")
}

// The write that frees a slot fails. Its two minutes are over all the same: the next write that is
// stored frees it.
func TestAWriteThatFailsBeginsNoOtherTwoMinutes(t *testing.T) {
	w := onItsWay(t)
	w.advance(inFlight)
	fails := true
	w.client.PrependReactor("update", "repositories", func(clienttesting.Action) (bool, k8sruntime.Object, error) {
		return fails, nil, apierrors.NewServiceUnavailable("down")
	})
	w.catchUp()
	if err := w.r.Reconcile(t.Context(), "one/app"); err == nil {
		t.Fatal("the write did not fail")
	}
	fails = false
	w.advance(time.Second)
	w.wantQueue(1, 0, "r1")
	if len(w.r.unseen.times) != 0 {
		t.Errorf("it remembers %v", w.r.unseen.times)
	}
}

// Of one slot the process may not find out whether its run is there. The others are looked at as
// soon as ever: nothing else tells that a create which was on its way has not arrived, or that a
// run is over whose end nobody could record.
func TestASlotThatCannotBeReadDelaysNoOther(t *testing.T) {
	w := line(t, 1, 2)
	w.wantQueue(1, 1, "r0")
	w.ran(0, func(run *v1alpha1.Run) { run.Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeCancelled} })
	w.tekton.PrependReactor("get", "pipelineruns", func(clienttesting.Action) (bool, k8sruntime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: "tekton.dev", Resource: "pipelineruns"}, "r0", nil)
	})
	if after := w.wantQueue(1, 1, "r0"); after != slotsLook {
		t.Errorf("looked at again after %v, want %v", after, slotsLook)
	}
}

// A process has given the slot whose clock was a day ahead. It is named after an hour all the same.
func TestASlotThatIsHeldSinceTomorrow(t *testing.T) {
	w := line(t, 1, 1)
	w.advance(24 * time.Hour)
	w.wantQueue(1, 0, "r0")
	w.advance(-24 * time.Hour)
	if after := w.wantQueue(1, 0, "r0"); after != heldLong {
		t.Errorf("looked at again after %v", after)
	}
	w.advance(heldLong)
	w.wantQueue(1, 0, "r0")
	w.wantCondition("one", "app", pacv1alpha1.RepositorySlots, "False Held")
}

// The condition says in one word what a run waits for that has its slot and cannot be created.
func TestAHeldSlotSaysWhatItsRunWaitsFor(t *testing.T) {
	w := line(t, 1, 2)
	w.wantQueue(1, 1, "r0")
	for i, run := range []string{"r0", "r1"} {
		wait := operatorWait("Forbidden", 0)
		wait.Step = v1alpha1.StepCreate + run
		w.events[i].Status.Waits = []v1alpha1.Wait{wait}
	}
	w.advance(heldLong)
	w.wantQueue(1, 1, "r0")
	if got := w.heldMessage(); !strings.Contains(got, "r0 (not created yet, Forbidden: kubectl ") || strings.Contains(got, "r1") {
		t.Errorf("the condition says %q", got)
	}
}

// The CustomResourceDefinition of somebody else has no status.queues. The API server drops them and
// says nothing; the Repository's Event says what to do, each look tries again, and no look follows
// at once.
func TestSlotsThatAreNotStored(t *testing.T) {
	for name, drop := range map[string]func(*pacv1alpha1.RepositoryStatus){
		"nothing is kept":        func(s *pacv1alpha1.RepositoryStatus) { *s = pacv1alpha1.RepositoryStatus{} },
		"the queues are not":     func(s *pacv1alpha1.RepositoryStatus) { s.Queues = nil },
		"a field of older slots": func(s *pacv1alpha1.RepositoryStatus) { s.Queues[0].Slots[0].Since = nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := line(t, 1, 2)
			foreign := true
			w.client.PrependReactor("update", "repositories", func(action clienttesting.Action) (bool, k8sruntime.Object, error) {
				sent, _ := action.(clienttesting.UpdateAction).GetObject().(*pacv1alpha1.Repository)
				if !foreign {
					return false, nil, nil
				}
				kept := sent.DeepCopy()
				drop(&kept.Status)
				return true, kept, w.client.Tracker().Update(pacv1alpha1.SchemeGroupVersion.WithResource("repositories"), kept, "one")
			})
			for range 3 {
				w.writes()
				if after := w.reconcile("one/app"); after < time.Second || after > slotsLook {
					t.Errorf("looked at again after %v", after)
				}
				if wrote := w.writes(); strings.Count(strings.Join(wrote, " "), "repositories/status") != 1 {
					t.Errorf("it wrote %v", wrote)
				}
				if told := strings.Join(w.told(), "\n"); !strings.Contains(told, "Warning SlotsNotStored") || !strings.Contains(told, "300-crd-repositories.yaml") {
					t.Errorf("told %q", told)
				}
				w.advance(slotsLook)
			}
			foreign = false
			w.wantQueue(1, 1, "r0")
		})
	}
}

// The events of many slots are gone, and the API server answers slowly: a reconcile ends in time to
// store what it has found out, so that the next one goes on with that, and is not the same again
// for ever.
func TestSlotsWhoseEventsAreGoneDoNotUseUpAReconcile(t *testing.T) {
	w := line(t, 100, 100)
	w.reconcile("one/app")
	w.events = nil
	began := w.clock.Now()
	w.client.PrependReactor("get", "gitevents", func(clienttesting.Action) (bool, k8sruntime.Object, error) {
		w.advance(time.Second)
		return true, nil, apierrors.NewNotFound(schema.GroupResource{Group: "plumbline.dev", Resource: "gitevents"}, "gone")
	})
	if after := w.reconcile("one/app"); after != slotsLook || w.clock.Since(began) > reconcileTimeout {
		t.Errorf("it took %v, and looks again after %v", w.clock.Since(began), after)
	}
	for range 200 {
		w.advance(slotsLook)
		w.reconcile("one/app")
	}
	if s := w.repository("one", "app").Status; len(s.Slots()) != 0 {
		t.Errorf("%d slots are left", len(s.Slots()))
	}
}
