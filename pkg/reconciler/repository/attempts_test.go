// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"slices"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/apis"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/runqueue"
)

// From the failure of an attempt until the next one exists, the run keeps its slot: no other event
// gets it. Without another attempt the slot is free as soon as the run is finished.
func TestSlotStaysBetweenAttempts(t *testing.T) {
	t.Parallel()
	failed := &pipelinev1.PipelineRun{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "build", UID: "1"}}
	failed.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: corev1.ConditionFalse})
	succeeded := failed.DeepCopy()
	succeeded.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: corev1.ConditionTrue})
	first := v1alpha1.Run{Namespace: "team", Name: "build", UID: "1", InfrastructureRetries: 1}
	last := first
	last.InfrastructureRetries = 0
	between := first
	between.Retry("build-2", &v1alpha1.Result{})
	author := first
	author.Result = &v1alpha1.Result{Outcome: v1alpha1.OutcomeFailed}
	for name, test := range map[string]struct {
		run    v1alpha1.Run
		cached *pipelinev1.PipelineRun
		want   bool
	}{
		"failed, and its event has not seen that": {first, failed, true},
		"failed, and there is no other attempt":   {last, failed, false},
		"succeeded":                               {first, succeeded, false},
		"the next attempt is to be created":       {between, failed, true},
		"failed because of its author":            {author, failed, false},
	} {
		runs := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
		if err := runs.Add(test.cached); err != nil {
			t.Fatal(err)
		}
		r := &Reconciler{runs: runs}
		if got := r.recordedKeepsSlot(&test.run); got != test.want {
			t.Errorf("%s: it keeps its slot: %v, want %v", name, got, test.want)
		}
	}
	event := &v1alpha1.GitEvent{Status: v1alpha1.GitEventStatus{Runs: []v1alpha1.Run{between}}}
	event.Name = "push-1"
	slot := pacv1alpha1.Slot{Run: "build", Event: "push-1"}
	if queue := runqueue.Queue([]*v1alpha1.GitEvent{event}, []pacv1alpha1.Slot{slot}); len(queue) > 0 {
		t.Errorf("the next attempt waits for another slot: %v", queue)
	}
	if run := runOf(slot, []*v1alpha1.GitEvent{event}); run == nil || run.Name != "build-2" {
		t.Errorf("the slot is that of %+v", run)
	}
}

// A slot whose event was deleted stays until the last attempt is finished.
func TestDeletedEventKeepsSlotOfItsLastAttempt(t *testing.T) {
	w := queued(t, 1, 2)
	w.wantQueue(1, 1, "r0")
	w.events = w.events[1:]
	w.must(w.client.Tracker().Delete(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), systemNS, "e0"))
	first := &pipelinev1.PipelineRun{ObjectMeta: metav1.ObjectMeta{Namespace: "one", Name: "r0"}}
	first.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: corev1.ConditionFalse})
	second := &pipelinev1.PipelineRun{ObjectMeta: metav1.ObjectMeta{Namespace: "one", Name: "r0-2"}}
	w.must(w.tekton.Tracker().Add(first))
	w.must(w.tekton.Tracker().Add(second))
	w.wantQueue(1, 1, "r0")
	second.Status = first.Status
	w.must(w.tekton.Tracker().Update(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"), second, "one"))
	w.wantQueue(1, 0, "r1")
}

// status.recent names the PipelineRun whose logs people can read: between two attempts, the earlier
// one.
func TestRecentNamesNewestAttempt(t *testing.T) {
	t.Parallel()
	event := &v1alpha1.GitEvent{
		Status: v1alpha1.GitEventStatus{Runs: []v1alpha1.Run{{Name: "planned"}, {Name: "build", UID: "1"}}},
	}
	run := &event.Status.Runs[1]
	for _, want := range []string{"build", "build", "build-2"} {
		if got := recentEvent(event).Runs; !slices.Equal(got, []string{want}) {
			t.Errorf("with the attempts %+v it names %v, want %s", run.Attempts, got, want)
		}
		if len(run.Attempts) == 0 {
			run.Retry("build-2", &v1alpha1.Result{})
		} else {
			run.UID = "2"
		}
	}
}
