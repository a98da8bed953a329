// SPDX-License-Identifier: Apache-2.0

package queueing

import (
	"fmt"
	"testing"

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
