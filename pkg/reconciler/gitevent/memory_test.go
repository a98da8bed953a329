// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/memory"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
)

// S5: a plan for which the budget of its Repository has no room is not stored. The event waits,
// says for what, and does not plan again until there is room. Then it runs.
func TestPlanWithoutMemoryWaits(t *testing.T) {
	t.Parallel()
	w := newEnv(t, noisy(helloFile("hello")))
	other := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "push-2"}, Spec: w.event().Spec}
	repository := quota.Use{Bytes: 1 << 40, Plan: 1 << 40}
	repository.Repository.Namespace, repository.Repository.Name = other.Spec.Repository.Namespace,
		other.Spec.Repository.Name
	other.Annotations = repository.Annotations()
	w.must(w.own.Tracker().Add(other))
	_, err := w.reconcile()
	wait := w.event().Status.Waits
	if err == nil || len(wait) != 1 || wait[0].Reason != quota.ReasonRepository || len(w.runs()) != 0 ||
		w.count("create eventpayloads") != 0 {
		t.Fatalf("error %v, waits %+v, %d runs: want that it waits for room", err, wait, len(w.runs()))
	}
	written := w.count("update gitevents/status")
	asked := w.count("patch gitevents") + w.git.heads + w.git.logins + len(w.git.newerFor)
	for range 30 {
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		_, _ = w.reconcile()
	}
	if now := w.count("patch gitevents") + w.git.heads + w.git.logins + len(w.git.newerFor); now != asked ||
		w.event().Status.Plan != nil {
		t.Errorf("%d calls after %d: it plans although there is no room", now, asked)
	}
	if now := w.count("update gitevents/status") - written; now < 3 || now > 6 {
		t.Errorf(
			"the status is written %d times in half an hour, want it seldom, and often enough to tell that it still waits", now)
	}
	w.must(w.own.Tracker().Delete(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), system, other.Name))
	w.kill()
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	w.settle(corev1.ConditionTrue)
	w.wantSuccess()
	if w.count("create eventpayloads") == 0 || w.event().Annotations["plumbline.dev/plan-bytes"] == "" {
		t.Errorf("annotations %v: want that the plan is stored and counted", w.event().Annotations)
	}
}

// B15: responses of a Git service, however slow, take the memory that all events share. An event
// whose responses find no room waits for others, and releases all of its memory.
func TestLargeResponsesReserveMemory(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.git.large = 100 << 20 // more than one event is counted for
	r := w.uncounted(w.reconciler)
	room := r.store.Memory
	for _, other := range []string{"one", "two"} {
		if !room.Reserve("e", other, memory.MaxEvent-memory.MaxPart, 0) ||
			!room.Reserve("e", other, memory.MaxPart/2, memory.MaxPart) {
			t.Fatal("there is no room")
		}
	}
	if err := r.Reconcile(t.Context(), system+"/push-1"); err == nil || len(w.runs()) != 0 ||
		len(w.event().Status.Waits) != 0 {
		t.Fatalf("error %v, %d runs, waits %+v: want that it waits for memory", err, len(w.runs()), w.event().Status.Waits)
	}
	read := len(w.git.read)
	for range 30 {
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		_ = r.Reconcile(t.Context(), system+"/push-1")
	}
	if now := len(w.git.read); now != read {
		t.Errorf("it is planned %d times while there is no memory for it", now-read)
	}
	w.wakes = nil
	room.Release("e", "one", memory.MaxEvent-memory.MaxPart/2)
	if len(w.wakes) != 1 || w.wakes[0] != 0 {
		t.Errorf("woken after %v when there is room", w.wakes)
	}
	if err := r.Reconcile(t.Context(), system+"/push-1"); err != nil || len(w.runs()) != 1 {
		t.Errorf("error %v, %d runs", err, len(w.runs()))
	}
	room.Release("e", "two", memory.MaxEvent-memory.MaxPart/2)
	for _, owner := range []string{"team", "two"} {
		if !room.Reserve("e", owner, memory.MaxPart, 0) {
			t.Errorf("not all of the room of %s was given back", owner)
		}
	}
}

// An event that is deleted while it waits for memory takes none.
func TestDeletedEventLeavesTheQueue(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.git.large = 100 << 20
	c := newCaches()
	r := w.uncounted(func() *Reconciler { w.fill(c); return w.reconcilerWith(c) })
	room := r.store.Memory
	for _, other := range []string{"one", "two", "three"} {
		if !room.Reserve(other, other, memory.MaxPart, 0) {
			t.Fatal("there is no room")
		}
	}
	if err := r.Reconcile(t.Context(), system+"/push-1"); err == nil || !room.Queued("push-1") {
		t.Fatalf("error %v: want that it waits for memory", err)
	}
	w.must(c.events.Replace(nil, ""))
	if err := r.Reconcile(t.Context(), system+"/push-1"); err != nil || room.Queued("push-1") {
		t.Errorf("error %v, it still waits", err)
	}
}
