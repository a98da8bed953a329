// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"encoding/json"
	"strconv"

	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// version does with the versions of GitEvents what a real API server does and the fake one does not: an update over another one than
// the newest is a conflict, and what is stored has been JSON.
func (w *world) version(tracker clienttesting.ObjectTracker) clienttesting.ReactionFunc {
	apply := clienttesting.ObjectReaction(tracker)
	return func(action clienttesting.Action) (bool, k8sruntime.Object, error) {
		update, ok := action.(clienttesting.UpdateAction)
		if !ok || action.GetVerb() != "update" {
			return apply(action)
		}
		event, ok := update.GetObject().(*v1alpha1.GitEvent)
		if !ok {
			return apply(action)
		}
		now := w.named(event.Name)
		if event.ResourceVersion != now.ResourceVersion {
			return true, nil, errConflict
		}
		next := next(event)
		if err := tracker.Update(action.GetResource(), next, system); err != nil {
			return true, nil, err
		}
		return true, next.DeepCopy(), nil
	}
}

// next is the version of an event that follows.
func next(event *v1alpha1.GitEvent) *v1alpha1.GitEvent {
	data, err := json.Marshal(event)
	if err != nil {
		panic(err)
	}
	stored := &v1alpha1.GitEvent{}
	if err := json.Unmarshal(data, stored); err != nil {
		panic(err)
	}
	n, _ := strconv.Atoi(event.ResourceVersion)
	stored.ResourceVersion = strconv.Itoa(n + 1)
	return stored
}

// edit changes the event as another process would. The one that is alive has noticed it: it would at its next write.
func (w *world) edit(change func(*v1alpha1.GitEvent)) {
	w.t.Helper()
	e := w.event()
	change(e)
	w.edited(e)
}

func (w *world) edited(e *v1alpha1.GitEvent) {
	w.t.Helper()
	w.must(w.own.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), next(e), system))
	if w.alive != nil {
		w.alive.desk.Known.Clear()
	}
}
