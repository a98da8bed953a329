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

// withPendingCreate returns an env with two runs, of which the first was cancelled while its create
// may still be running: it keeps its slot for two minutes.
func withPendingCreate(t *testing.T) *env {
	t.Helper()
	w := queued(t, 1, 2)
	w.wantQueue(1, 1, "r0")
	w.ran(0, func(run *v1alpha1.Run) { run.Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeCancelled} })
	w.wantQueue(1, 1, "r0")
	return w
}

// Another process takes over, whose clock is ahead by two minutes. It does not know when the create
// started, so it releases the slot after two minutes by its own clock.
func TestPendingCreateIsMeasuredByEachClock(t *testing.T) {
	w := withPendingCreate(t)
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

// While another process leads, the run is planned again and cancelled again.
func TestReplannedRunKeepsItsSlotForAnotherTwoMinutes(t *testing.T) {
	w := withPendingCreate(t)
	w.advance(inFlight)
	changed := w.repository("one", "app")
	at := metav1.NewTime(w.clock.Now().Add(inFlight))
	changed.Status.Queues[0].Slots[0].FreeAt = &at
	w.must(w.client.Tracker().Update(pacv1alpha1.SchemeGroupVersion.WithResource("repositories"), changed, "one"))
	w.wantQueue(1, 1, "r0")
	w.advance(inFlight)
	w.wantQueue(1, 0, "r1")
}

// The write that releases a slot fails. The next write that is stored releases it.
func TestFailedWriteStartsNoOtherTwoMinutes(t *testing.T) {
	w := withPendingCreate(t)
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

// The API server does not show whether the run of one slot exists. The others are read as often as
// ever: no event wakes the key when a pending create has failed, or when a run is finished and its
// end was not recorded.
func TestUnreadableSlotDelaysNoOther(t *testing.T) {
	w := queued(t, 1, 2)
	w.wantQueue(1, 1, "r0")
	w.ran(0, func(run *v1alpha1.Run) { run.Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeCancelled} })
	w.tekton.PrependReactor("get", "pipelineruns", func(clienttesting.Action) (bool, k8sruntime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: "tekton.dev", Resource: "pipelineruns"}, "r0",
			nil)
	})
	if after := w.wantQueue(1, 1, "r0"); after != slotsEvery {
		t.Errorf("reconciled again after %v, want %v", after, slotsEvery)
	}
}

// A process whose clock was a day ahead gave the slot. It is named after an hour.
func TestSlotWithATimeInTheFutureIsNamed(t *testing.T) {
	w := queued(t, 1, 1)
	w.advance(24 * time.Hour)
	w.wantQueue(1, 0, "r0")
	w.advance(-24 * time.Hour)
	if after := w.wantQueue(1, 0, "r0"); after != heldLong {
		t.Errorf("reconciled again after %v", after)
	}
	w.advance(heldLong)
	w.wantQueue(1, 0, "r0")
	w.wantCondition("one", "app", pacv1alpha1.RepositorySlots, "False Held")
}

// The run has its slot and cannot be created.
func TestHeldSlotNamesTheWaitOfItsRun(t *testing.T) {
	w := queued(t, 1, 2)
	w.wantQueue(1, 1, "r0")
	for i, run := range []string{"r0", "r1"} {
		wait := operatorWait("Forbidden", 0)
		wait.Step = v1alpha1.StepCreate + run
		w.events[i].Status.Waits = []v1alpha1.Wait{wait}
	}
	w.advance(heldLong)
	w.wantQueue(1, 1, "r0")
	if got := w.heldMessage(); !strings.Contains(got, "r0 (not created yet, Forbidden: kubectl ") ||
		strings.Contains(got, "r1") {
		t.Errorf("the condition says %q", got)
	}
}

// The CustomResourceDefinition of another product has no status.queues, and the API server drops
// them silently. The Event says what to do. Each reconcile tries again, and none follows at once.
func TestSlotsThatAreNotStoredAreReported(t *testing.T) {
	for name, drop := range map[string]func(*pacv1alpha1.RepositoryStatus){
		"nothing is kept":        func(s *pacv1alpha1.RepositoryStatus) { *s = pacv1alpha1.RepositoryStatus{} },
		"the queues are not":     func(s *pacv1alpha1.RepositoryStatus) { s.Queues = nil },
		"a field of older slots": func(s *pacv1alpha1.RepositoryStatus) { s.Queues[0].Slots[0].Since = nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := queued(t, 1, 1) // no other run would have the Repository reconciled again
			foreign := true
			w.client.PrependReactor("update", "repositories",
				func(action clienttesting.Action) (bool, k8sruntime.Object, error) {
					sent, _ := action.(clienttesting.UpdateAction).GetObject().(*pacv1alpha1.Repository)
					if !foreign {
						return false, nil, nil
					}
					kept := sent.DeepCopy()
					drop(&kept.Status)
					return true, kept, w.client.Tracker().Update(pacv1alpha1.SchemeGroupVersion.WithResource("repositories"), kept,
						"one")
				})
			for range 3 {
				w.writes()
				if after := w.reconcile("one/app"); after < time.Second || after > slotsEvery {
					t.Errorf("reconciled again after %v", after)
				}
				if wrote := w.writes(); strings.Count(strings.Join(wrote, " "), "repositories/status") != 1 {
					t.Errorf("it wrote %v", wrote)
				}
				if published := strings.Join(w.published(), "\n"); !strings.Contains(published, "Warning SlotsNotStored") ||
					!strings.Contains(published, "300-crd-repositories.yaml") {
					t.Errorf("Events %q", published)
				}
				w.advance(slotsEvery)
			}
			foreign = false
			w.wantQueue(1, 0, "r0")
		})
	}
}

// The definition of another product keeps nothing of the status, so a write makes no new version.
// The Repository is reconciled nevertheless: it leaves an installation that does not serve it.
func TestStatusThatIsNotStoredBlocksNoReconcile(t *testing.T) {
	w := newEnv(t, repo("one", "app", appURL))
	w.client.PrependReactor("update", "repositories", func(a clienttesting.Action) (bool, k8sruntime.Object, error) {
		sent, _ := a.(clienttesting.UpdateAction).GetObject().(*pacv1alpha1.Repository)
		kept := sent.DeepCopy()
		kept.Status = pacv1alpha1.RepositoryStatus{}
		return true, kept, nil
	})
	w.reconcile("one/app", "one/app")
	w.wantOwner(appURL, "one/app")
	w.serve("two")
	w.reconcile("one/app")
	if w.claimOf(appURL).Status.ReleasedAt == nil {
		t.Error("the claim is not released")
	}
}

// The events of many slots are deleted, and the API server is slow. A reconcile ends in time to
// store its results, so that the next one goes on from there.
func TestSlotsOfDeletedEventsLeaveTimeForTheWrite(t *testing.T) {
	w := queued(t, 100, 100)
	w.reconcile("one/app")
	w.events = nil
	began := w.clock.Now()
	w.client.PrependReactor("get", "gitevents", func(clienttesting.Action) (bool, k8sruntime.Object, error) {
		w.advance(time.Second)
		return true, nil, apierrors.NewNotFound(schema.GroupResource{Group: "plumbline.dev", Resource: "gitevents"}, "gone")
	})
	if after := w.reconcile("one/app"); after != slotsEvery || w.clock.Since(began) > reconcileTimeout {
		t.Errorf("it took %v, and is due after %v", w.clock.Since(began), after)
	}
	for range 200 {
		w.advance(slotsEvery)
		w.reconcile("one/app")
	}
	if s := w.repository("one", "app").Status; len(s.Slots()) != 0 {
		t.Errorf("%d slots are left", len(s.Slots()))
	}
}
