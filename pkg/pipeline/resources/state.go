// SPDX-License-Identifier: Apache-2.0

package resources

import (
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
)

// The watcher of Pipelines-as-Code adopts each PipelineRun with the annotation "state": it adds its
// finalizer and reports the run. Its queue counts those with the label (docs/adr/0061).

// RemoveState removes the label and the annotation "state" from a PipelineRun that is not created
// yet.
func RemoveState(run *pipelinev1.PipelineRun) {
	delete(run.Labels, pipelinesascode.State)
	delete(run.Annotations, pipelinesascode.State)
}

// MarkReported adds what a PipelineRun gets once the Git service has accepted its final report:
// "completed" as its state, or a label of Plumbline's own if it was created without a state.
func MarkReported(labels, annotations map[string]string, withoutState bool) {
	if withoutState {
		labels[plumbline.ReportedLabel] = plumbline.Reported
		return
	}
	labels[pipelinesascode.State] = pipelinesascode.StateCompleted
	annotations[pipelinesascode.State] = pipelinesascode.StateCompleted
}

// MarkedReported reports whether MarkReported has marked a PipelineRun with these labels.
func MarkedReported(labels map[string]string) bool {
	return labels[pipelinesascode.State] == pipelinesascode.StateCompleted ||
		labels[plumbline.ReportedLabel] == plumbline.Reported
}
