// SPDX-License-Identifier: Apache-2.0

package resources

import (
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
)

// Confine makes a PipelineRun one of a commit that its author may not run, and that somebody else
// has approved (S23): admission policies see so, and it has the given ServiceAccount, whatever its
// definition names. Without one Tekton's webhook sets its own default (default-service-account in
// the ConfigMap config-defaults), as for every PipelineRun that names none.
func Confine(run *pipelinev1.PipelineRun, serviceAccount string) {
	run.Labels[plumbline.TrustLabel] = plumbline.TrustUntrusted
	run.Spec.TaskRunTemplate.ServiceAccountName = serviceAccount
	for i := range run.Spec.TaskRunSpecs {
		run.Spec.TaskRunSpecs[i].ServiceAccountName = ""
	}
}
