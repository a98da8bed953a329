// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// consoleRerun returns what the button *Rerun* of the OpenShift console creates:
// openshift-pipelines/console-plugin, src/components/start-pipeline/utils.ts, getPipelineRunData.
// It copies all labels, annotations and the spec, with another name.
func consoleRerun(of *pipelinev1.PipelineRun) *pipelinev1.PipelineRun {
	again := &pipelinev1.PipelineRun{ObjectMeta: metav1.ObjectMeta{
		Namespace: of.Namespace, Name: of.Name + "-k3x9q", UID: "rerun",
		Labels: maps.Clone(of.Labels), Annotations: maps.Clone(of.Annotations),
	}, Spec: *of.Spec.DeepCopy()}
	again.Annotations["pipeline.openshift.io/preferredName"] = of.Name
	again.Spec.Status = ""
	return again
}

// A copy of a PipelineRun runs without Plumbline: its result is not the event's, no check shows it,
// and it neither takes a slot nor is changed. It may be created while the original runs or later.
func TestConsoleRerunDisturbsNothing(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]bool{"of a finished PipelineRun": false, "of a running one": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, helloFile("hello"))
			copied := (*pipelinev1.PipelineRun)(nil)
			rerun := func() {
				copied = consoleRerun(&w.runs()[0])
				copied.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: corev1.ConditionFalse})
				w.must(w.tekton.Tracker().Add(copied))
			}
			for range 5 {
				_, _ = w.reconcile()
			}
			if early {
				rerun()
			}
			w.settle(corev1.ConditionTrue)
			before, shown := w.event(), maps.Clone(w.git.checks)
			if !early {
				rerun()
			}
			_, _ = w.reconcile()
			if run := w.event().Status.Runs[0]; run.Result == nil || run.Result.Outcome != v1alpha1.OutcomeSucceeded {
				t.Errorf("the result of the copy is that of the event: %+v", run.Result)
			}
			if diff := cmp.Diff(before.Status, w.event().Status) + cmp.Diff(shown, w.git.checks); diff != "" {
				t.Error(diff)
			}
			if ends := conclusions(w.git.checks); !slices.Equal(ends, []status.Conclusion{status.Success}) {
				t.Errorf("the checks are %v", ends)
			}
			for _, run := range w.runs() {
				if run.Name == copied.Name {
					if diff := cmp.Diff(copied, &run); diff != "" {
						t.Errorf("the copy was changed: %s", diff)
					}
				} else if run.Labels[pipelinesascode.State] != pipelinesascode.StateCompleted {
					t.Errorf("the original has the state %q", run.Labels[pipelinesascode.State])
				}
			}
		})
	}
}

func conclusions(checks map[string]status.Check) (all []status.Conclusion) {
	for _, check := range checks {
		all = append(all, check.Conclusion)
	}
	return all
}
