// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"encoding/json"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// version handles the versions of GitEvents like a real API server, which the fake does not: an
// update of an old version is a conflict, a patch that changes something makes a new version, and
// stored objects have been through JSON.
func (w *env) version(tracker clienttesting.ObjectTracker) clienttesting.ReactionFunc {
	apply := clienttesting.ObjectReaction(tracker)
	return func(action clienttesting.Action) (bool, k8sruntime.Object, error) {
		if patch, ok := action.(clienttesting.PatchAction); ok && action.GetResource().Resource == "gitevents" {
			return w.patched(tracker, apply, patch)
		}
		update, ok := action.(clienttesting.UpdateAction)
		if !ok || action.GetVerb() != "update" {
			return apply(action)
		}
		event, ok := update.GetObject().(*v1alpha1.GitEvent)
		if !ok {
			return apply(action)
		}
		now := w.eventNamed(event.Name)
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

// patched applies a patch. A version and a UID in it are preconditions.
func (w *env) patched(tracker clienttesting.ObjectTracker, apply clienttesting.ReactionFunc,
	patch clienttesting.PatchAction) (bool, k8sruntime.Object, error) {
	var wanted struct {
		Metadata struct {
			UID             types.UID `json:"uid"`
			ResourceVersion string    `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(patch.GetPatch(), &wanted); err != nil {
		return true, nil, err
	}
	before := w.eventNamed(patch.GetName())
	if m := wanted.Metadata; m.ResourceVersion != "" && m.ResourceVersion != before.ResourceVersion ||
		m.UID != "" && m.UID != before.UID {
		return true, nil, errConflict
	}
	_, obj, err := apply(patch)
	after, ok := obj.(*v1alpha1.GitEvent)
	if err != nil || !ok || equality.Semantic.DeepEqual(before, after) {
		return true, obj, err
	}
	after = next(after)
	if err := tracker.Update(patch.GetResource(), after, system); err != nil {
		return true, nil, err
	}
	return true, after.DeepCopy(), nil
}

// next returns the next version of an event.
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

// edit changes the event as another process would. The live process is notified of it: it would
// notice at its next write.
func (w *env) edit(change func(*v1alpha1.GitEvent)) {
	w.t.Helper()
	e := w.event()
	change(e)
	w.replaceEvent(e)
}

func (w *env) replaceEvent(e *v1alpha1.GitEvent) {
	w.t.Helper()
	w.must(w.own.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), next(e), system))
	if w.alive != nil {
		w.alive.state.Cache.Clear()
	}
}
