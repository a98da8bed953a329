// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/plan"
)

func reasons(made *plan.Plan) map[string]string {
	all := map[string]string{}
	for _, d := range made.Decisions {
		all[d.Pipeline] = d.Reason
	}
	return all
}

func decoded(t *testing.T, run plan.Run) *pipelinev1.PipelineRun {
	t.Helper()
	made, err := run.PipelineRun()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func created(made *plan.Plan) []string {
	var names []string
	for _, run := range made.Runs {
		if run.Manifest != nil {
			names = append(names, run.Pipeline)
		}
	}
	return names
}
