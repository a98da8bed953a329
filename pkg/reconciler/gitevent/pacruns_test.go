// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// A PipelineRun that Pipelines-as-Code left in the Repository's namespace counts for /retest. It is
// neither reported nor changed.
func TestRetestLeavesOutSuccessOfPaC(t *testing.T) {
	t.Parallel()
	for status, reason := range map[corev1.ConditionStatus]string{"True": "NothingToRetest", "False": "Selected"} {
		w := asked(t, "/retest", false)
		first := w.eventNamed("first") // no run of Plumbline is on record
		first.Status.Runs = nil
		w.replaceEvent(first)
		left := &pipelinev1.PipelineRun{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "hello-x7k2p",
			Labels: map[string]string{
				pipelinesascode.ManagedByLabel: pipelinesascode.ManagedBy,
				pipelinesascode.SHA:            sha,
				pipelinesascode.PullRequest:    "3",
			},
			Annotations: map[string]string{
				pipelinesascode.Repository: first.Spec.Repository.Name, pipelinesascode.OriginalPRName: "hello",
			},
		}}
		left.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: status})
		w.must(w.tekton.Tracker().Add(left))
		w.settle(corev1.ConditionTrue)
		event := w.event()
		if want := map[bool]int{true: 1}[status == "False"]; len(event.Status.Runs) != want ||
			event.Status.Plan.Reason != reason {
			t.Errorf("%s: %s %q, runs %v", status, event.Status.Plan.Reason, event.Status.Plan.Message, event.Status.Runs)
		}
		for _, run := range w.runs() {
			if run.Name == left.Name && !equality.Semantic.DeepEqual(*left, run) {
				t.Errorf("%s: it was changed: %s", status, cmp.Diff(*left, run))
			}
		}
		if event.Status.Phase != v1alpha1.PhaseSettled {
			t.Errorf("%s: the event is not settled", status)
		}
	}
}
