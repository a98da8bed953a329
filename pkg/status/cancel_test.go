// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// D5: the check of a cancelled run that still runs says so, also if the run is pending.
func TestDesiredCancelling(t *testing.T) {
	ends := event(v1alpha1.DispositionRuns)
	name, value, err := (&v1alpha1.Cancellation{By: "rita", Why: "rita asked for it"}).CancelsAs("comment-9")
	if err != nil {
		t.Fatal(err)
	}
	ends.Annotations = map[string]string{name: value}
	for _, status := range []pipelinev1.PipelineRunSpecStatus{"", pipelinev1.PipelineRunSpecStatusPending} {
		pr := pipelineRun(succeeded(corev1.ConditionUnknown, "Any", ""))
		pr.Spec.Status = status
		run := RunState{Run: created(), PipelineRun: pr, CancelRefused: waitFor("Operator", "AdmissionDenied", "not now")}
		got := Desired(Input{Application: "Plumbline CI", Event: ends, Runs: []RunState{run}})[0]
		golden(t, "check-cancelling", got.Summary+"\n\n"+got.Text)
		if got.State != InProgress || got.Title != "Cancelling" {
			t.Errorf("with spec.status %q: %s, %q", status, got.State, got.Title)
		}
	}
}
