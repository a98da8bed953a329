// SPDX-License-Identifier: Apache-2.0

package queueing

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/attempt"
	"github.com/plumbline-ci/plumbline/pkg/cluster"
)

const installation = "plumbline"

func event(name string, runs int) *v1alpha1.GitEvent {
	e := &v1alpha1.GitEvent{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for i := range runs {
		e.Status.Runs = append(e.Status.Runs, v1alpha1.Run{Name: fmt.Sprint("run-", i)})
	}
	return e
}

// An event with many runs puts the line in order once for all of them, and again when the slots have changed: the line may have thousands,
// and each of its events is woken for each slot.
func TestTheLineIsPutInOrderOnceForAllRunsOfAnEvent(t *testing.T) {
	t.Parallel()
	asked, own := 0, event("b", 250)
	l := &Line{installation: installation, open: cluster.Open{Of: func(string, string) []*v1alpha1.GitEvent {
		asked++
		return []*v1alpha1.GitEvent{own, event("a", 3)}
	}}}
	view, repository := l.Of(&attempt.Attempt{Event: own}), &pacv1alpha1.Repository{}
	for i := range own.Status.Runs {
		if place := view.place(repository, &own.Status.Runs[i]); place != 4+i {
			t.Errorf("%s has place %d", own.Status.Runs[i].Name, place)
		}
	}
	if asked != 1 {
		t.Errorf("put in order %d times", asked)
	}
	later := repository.DeepCopy()
	later.Status.SetQueue(installation, &pacv1alpha1.Queue{Installation: installation, Slots: []pacv1alpha1.Slot{{Event: "a", Run: "run-0"}}})
	if place := view.place(later, &own.Status.Runs[0]); place != 3 {
		t.Errorf("when a slot is given it has place %d", place)
	}
	if place := view.place(later, &v1alpha1.Run{Name: "not in the cache"}); place != 253 {
		t.Errorf("what the cache does not have has place %d", place)
	}
}

// Another process may give a slot before the cache of this one has the plan of its event. Nothing else wakes the event then.
func TestAnEventIsWokenForItsSlotBeforeTheCacheHasItsPlan(t *testing.T) {
	t.Parallel()
	l := &Line{installation: installation, open: cluster.Open{Of: func(string, string) []*v1alpha1.GitEvent {
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
	l.Changed(with("runs"), with("runs", "unplanned"), func(event string, _ time.Duration) { woken = append(woken, event) })
	if want := []string{"unplanned", "waits"}; !slices.Equal(woken, want) {
		t.Errorf("woken %v, want %v", woken, want)
	}
}
