// SPDX-License-Identifier: Apache-2.0

package resources

import (
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
)

// Confine marks a PipelineRun whose commit was approved by another user, because its author may not
// run it (S23). A label shows this to admission policies, and the run gets the given ServiceAccount
// instead of the one in its definition. Without one, Tekton's webhook sets its default
// (default-service-account in the ConfigMap config-defaults).
func Confine(run *pipelinev1.PipelineRun, serviceAccount string) {
	run.Labels[plumbline.TrustLabel] = plumbline.TrustUntrusted
	run.Spec.TaskRunTemplate.ServiceAccountName = serviceAccount
	for i := range run.Spec.TaskRunSpecs {
		run.Spec.TaskRunSpecs[i].ServiceAccountName = ""
	}
}
