// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"cmp"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
)

// Confine makes a PipelineRun one of a commit that its author may not run, and that somebody else has approved (S23): admission policies see
// so, and it has the given ServiceAccount or the namespace's default, whatever its definition names.
func Confine(run *pipelinev1.PipelineRun, serviceAccount string) {
	run.Labels[plumbline.TrustLabel] = plumbline.TrustUntrusted
	run.Spec.TaskRunTemplate.ServiceAccountName = cmp.Or(serviceAccount, "default")
	for i := range run.Spec.TaskRunSpecs {
		run.Spec.TaskRunSpecs[i].ServiceAccountName = ""
	}
}
