// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

func (w *env) heldMessage() string {
	w.Helper()
	c := w.repository("one", "app").Status.GetCondition(pacv1alpha1.RepositorySlots)
	if c == nil {
		return ""
	}
	return c.Message
}

// The condition names the stuck slot once, without any event. The names change with the next stuck
// slot, and the condition is true again when all are released.
func TestSlotHeldForAnHourIsNamed(t *testing.T) {
	w := queued(t, 2, 3)
	w.ran(0, func(run *v1alpha1.Run) { run.UID = "uid" })
	w.ran(2, func(run *v1alpha1.Run) { run.Refused = &v1alpha1.Refusal{Reason: "Denied"} }) // no run waits
	if after := w.wantQueue(2, 0, "r0", "r1"); after != heldLong {
		t.Errorf("reconciled again after %v, want an hour", after)
	}
	w.ran(0, ended)
	w.advance(50 * time.Minute)
	w.wantQueue(1, 0, "r1")
	w.ran(2, func(run *v1alpha1.Run) { run.Refused, run.UID = nil, "uid" })
	if after := w.wantQueue(2, 0, "r1", "r2"); after != 10*time.Minute || w.heldMessage() != "" {
		t.Errorf("reconciled again after %v, want ten minutes: %q", after, w.heldMessage())
	}
	w.advance(10 * time.Minute)
	w.wantQueue(2, 0, "r1", "r2")
	w.wantCondition("one", "app", pacv1alpha1.RepositorySlots, "False Held")
	w.wantCondition("one", "app", ready, "True ") // it is served
	if got := w.heldMessage(); !strings.Contains(got,
		"hour: r1 (not created yet: kubectl -n "+systemNS+" get gitevent e1 says what it waits for). ") {
		t.Errorf("the condition says %q", got)
	}
	w.writes()
	for range 3 {
		w.advance(slotsEvery)
		w.reconcile("one/app")
	}
	if wrote := w.writes(); len(wrote) > 0 {
		t.Errorf("without a change it wrote %v", wrote)
	}
	w.advance(time.Hour)
	w.reconcile("one/app")
	if got := w.heldMessage(); !strings.Contains(got, "r1 (not") || !strings.Contains(got, ", r2. ") {
		t.Errorf("the condition says %q", got)
	}
	w.ran(1, ended)
	w.ran(2, ended)
	w.reconcile("one/app")
	w.wantCondition("one", "app", pacv1alpha1.RepositorySlots, "True Free")
	if published := strings.Join(w.published(), "\n"); strings.Count(published, "Warning Held") != 1 ||
		strings.Count(published, "Normal Free") != 1 {
		t.Errorf("message: %s", published)
	}
}

// The condition names a few of many, those with the oldest slots. It goes when the limit goes.
func TestConditionNamesTheOldestSlots(t *testing.T) {
	w := queued(t, 8, 8)
	changed := w.repository("one", "app")
	queue := &pacv1alpha1.Queue{Installation: systemNS}
	for i := range 8 {
		since := metav1.NewTime(start.Add(-time.Duration(i) * time.Minute))
		slot := pacv1alpha1.Slot{Run: fmt.Sprint("r", i), Event: fmt.Sprint("e", i), Since: &since}
		if i == 0 {
			slot.Since = nil // as in a status of an older version
		}
		queue.Slots = append(queue.Slots, slot)
	}
	changed.Status.SetQueue(systemNS, queue)
	w.must(w.client.Tracker().Update(pacv1alpha1.SchemeGroupVersion.WithResource("repositories"), changed, "one"))
	w.reconcile("one/app")
	w.advance(time.Hour)
	w.reconcile("one/app")
	if got := w.heldMessage(); !strings.Contains(got, "hour: r7 ") || strings.Contains(got, "r2 ") ||
		!strings.Contains(got, " and 3 more. ") {
		t.Errorf("the condition says %q", got)
	}
	changed = w.repository("one", "app")
	changed.Spec.ConcurrencyLimit = nil
	w.must(w.client.Tracker().Update(pacv1alpha1.SchemeGroupVersion.WithResource("repositories"), changed, "one"))
	w.reconcile("one/app")
	w.wantCondition("one", "app", pacv1alpha1.RepositorySlots, "True Free")
}
