// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// heldLong is how long a run may have its slot before a condition names it.
	heldLong = time.Hour
	// maxHeld is how many runs the condition names.
	maxHeld = 5

	reasonHeld = "Held"
	// reasonNotStored is the reason of the fault and the Event of a Repository whose slots the API
	// server does not store.
	reasonNotStored = "SlotsNotStored"
)

// setTimes sets the time of slots that have none, or one in the future from a process whose clock
// was ahead.
func (r *Reconciler) setTimes(slots []pacv1alpha1.Slot) {
	now := metav1.NewTime(r.clock.Now().Truncate(time.Second))
	for i := range slots {
		if slots[i].Since == nil || slots[i].Since.After(now.Time) {
			slots[i].Since = now.DeepCopy()
		}
	}
}

// markHeld names the runs that have had a slot for long. The message has no times, so it changes
// only when a run comes or goes. The error is the time of the next reconcile, because no change
// wakes the key when an hour has passed.
func (r *Reconciler) markHeld(repository *pacv1alpha1.Repository) error {
	if !r.eventsSynced() {
		return nil // markCredentials returns that error
	}
	var held []pacv1alpha1.Slot
	var next time.Duration
	if queue := repository.Status.Queue(r.namespace); queue != nil {
		for _, slot := range queue.Slots {
			if slot.Since == nil {
				continue
			}
			left := heldLong - r.clock.Since(slot.Since.Time)
			if left <= 0 {
				held = append(held, slot)
				continue
			}
			if next == 0 || left < next {
				next = left
			}
		}
	}
	switch {
	case len(held) > 0:
		repository.By(r.namespace).MarkFalse(pacv1alpha1.RepositorySlots, reasonHeld, r.heldMessage(repository, held))
	case repository.Status.GetCondition(pacv1alpha1.RepositorySlots) != nil:
		repository.By(r.namespace).
			MarkTrue(pacv1alpha1.RepositorySlots, reasonFree, "No run has had its slot for longer than an hour.")
	}
	if next == 0 {
		return nil
	}
	return fault.Throttledf(reasonHeld, next, "a run has its slot for an hour then")
}

// heldMessage names the runs, those with the oldest slots first, and says what the user can do.
func (r *Reconciler) heldMessage(repository *pacv1alpha1.Repository, held []pacv1alpha1.Slot) string {
	slices.SortFunc(held, func(a, b pacv1alpha1.Slot) int {
		return cmp.Or(a.Since.Compare(b.Since.Time), cmp.Compare(a.Run, b.Run))
	})
	events := r.openEvents(repository.Namespace, repository.Name)
	var names []string
	for _, slot := range held[:min(len(held), maxHeld)] {
		names = append(names, slot.Run+r.waitReason(slot, events))
	}
	more := ""
	if len(held) > maxHeld {
		more = fmt.Sprintf(" and %d more", len(held)-maxHeld)
	}
	return fmt.Sprintf(
		"Of the slots of concurrency_limit these PipelineRuns have had theirs for longer than an hour: %s%s. "+
			"If one should not, end it with /cancel on its pull request or commit, or with tkn pipelinerun cancel -n %s <name>; a timeout in its definition ends the next one.",
		strings.Join(names, ", "),
		more,
		repository.Namespace,
	)
}

// waitReason returns why a run that was not created yet keeps its slot.
func (r *Reconciler) waitReason(slot pacv1alpha1.Slot, events []*v1alpha1.GitEvent) string {
	run := runOf(slot, events)
	if run == nil || run.UID != "" {
		return ""
	}
	reason := ""
	for _, event := range events {
		for _, wait := range event.Status.Waits {
			if event.Name == slot.Event && wait.Step == v1alpha1.StepCreate+run.Name &&
				wait.Reason != fault.ReasonConcurrencyLimit {
				reason = ", " + wait.Reason
			}
		}
	}
	return fmt.Sprintf(" (not created yet%s: kubectl -n %s get gitevent %s says what it waits for)",
		reason, r.namespace, slot.Event)
}
