// SPDX-License-Identifier: Apache-2.0

package slotwait

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/runqueue"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/deps"
)

const installation = "plumbline"

func event(name string, runs int) *v1alpha1.GitEvent {
	e := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for i := range runs {
		e.Status.Runs = append(e.Status.Runs, v1alpha1.Run{Name: fmt.Sprint("run-", i)})
	}
	return e
}

// An event with many runs sorts the queue once for all of them, and again when the slots have
// changed: the queue may have thousands of runs, and each of its events is woken for each slot.
func TestQueueIsSortedOncePerEvent(t *testing.T) {
	t.Parallel()
	asked, own := 0, event("b", 250)
	l := &Waiters{installation: installation, open: deps.Open{Of: func(string, string) []*v1alpha1.GitEvent {
		asked++
		return []*v1alpha1.GitEvent{own, event("a", 3)}
	}}}
	view, repository := l.Of(&attempt.Attempt{Event: own}), &pacv1alpha1.Repository{}
	for i := range own.Status.Runs {
		if place := view.position(repository, &own.Status.Runs[i]); place != 4+i {
			t.Errorf("%s has place %d", own.Status.Runs[i].Name, place)
		}
	}
	if asked != 1 {
		t.Errorf("put in order %d times", asked)
	}
	later := repository.DeepCopy()
	later.Status.SetQueue(installation,
		&pacv1alpha1.Queue{Installation: installation, Slots: []pacv1alpha1.Slot{{Event: "a", Run: "run-0"}}})
	if place := view.position(later, &own.Status.Runs[0]); place != 3 {
		t.Errorf("when a slot is given it has place %d", place)
	}
	if place := view.position(later, &v1alpha1.Run{Name: "not in the cache"}); place != 253 {
		t.Errorf("what the cache does not have has place %d", place)
	}
}

// Another process may assign a slot before this process's cache has the plan of the event. Nothing
// else wakes the event then.
func TestSlotWakesAnEventWithoutACachedPlan(t *testing.T) {
	t.Parallel()
	l := &Waiters{installation: installation, open: deps.Open{Of: func(string, string) []*v1alpha1.GitEvent {
		return []*v1alpha1.GitEvent{event("unplanned", 0), event("waits", 2)}
	}}}
	with := func(events ...string) *pacv1alpha1.Repository {
		queue := &pacv1alpha1.Queue{Installation: installation}
		for _, name := range events {
			queue.Slots = append(queue.Slots, pacv1alpha1.Slot{Event: name, Run: "run-0"})
		}
		r := &pacv1alpha1.Repository{}
		r.Status.SetQueue(installation, queue)
		return r
	}
	var woken []string
	l.Changed(with("runs"), with("runs", "unplanned"),
		func(event string, _ time.Duration) { woken = append(woken, event) })
	if want := []string{"unplanned", "waits"}; !slices.Equal(woken, want) {
		t.Errorf("woken %v, want %v", woken, want)
	}
}

// Each free slot changes the positions of all waiting runs, and what the checks of a few show. Only
// these are woken.
func TestSlotWakesFewOfManyWaiting(t *testing.T) {
	t.Parallel()
	const all = 1000
	var events []*v1alpha1.GitEvent
	for i := range all {
		e := event(fmt.Sprintf("e%04d", i), 1)
		e.Status.Waits = []v1alpha1.Wait{{Step: v1alpha1.StepCreate + "run-0",
			Message: runqueue.Says("", runqueue.Waiting{Repository: "team/app", Limit: 1, Place: i}, nil)}}
		events = append(events, e)
	}
	l := &Waiters{
		installation: installation, open: deps.Open{Of: func(string, string) []*v1alpha1.GitEvent { return events }},
	}
	with := func(limit int, event string) *pacv1alpha1.Repository {
		r := &pacv1alpha1.Repository{Spec: pacv1alpha1.RepositorySpec{ConcurrencyLimit: &limit}}
		r.Status.SetQueue(installation,
			&pacv1alpha1.Queue{Installation: installation, Slots: []pacv1alpha1.Slot{{Event: event, Run: "run-0"}}})
		return r
	}
	var woken []string
	wake := func(event string, _ time.Duration) { woken = append(woken, event) }
	l.Changed(with(1, "runs"), with(1, "e0000"), wake)
	if want := []string{"e0000"}; !slices.Equal(woken, want) {
		t.Errorf("when the first of the line gets a slot %v are woken", woken)
	}
	woken, events[0].Status.Runs[0].Result = nil, &v1alpha1.Result{}
	l.Changed(with(1, "e0000"), with(1, "e0001"), wake)
	if want := strings.Fields("e0001 e0002 e0003 e0004 e0006 e0011 e0021 e0051 e0101"); !slices.Equal(woken, want) {
		t.Errorf("when it has ended %v are woken, want %v", woken, want)
	}
	woken = nil
	if l.Changed(with(1, "e0001"), with(2, "e0001"), wake); len(woken) != all-1 {
		t.Errorf("%d are woken when the limit changes", len(woken))
	}
}
