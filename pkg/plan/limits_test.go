// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/plan"
)

// S36: a pipeline that exceeds a limit is refused, and the other pipelines run. Without limits all
// run.
func TestPipelineAboveLimitsIsRefused(t *testing.T) {
	t.Parallel()
	greedy := edited(pipeline("greedy"), "spec:\n",
		"spec:\n  taskRunTemplate: {serviceAccountName: admin, podTemplate: {hostNetwork: true}}\n")
	for sentence, c := range map[string]struct {
		limit   func(*plan.Input)
		refused []string // what the refusal says, none if there is none
	}{
		"no limits": {func(*plan.Input) {}, nil},
		"the installation's": {func(in *plan.Input) { in.Config.RunLimits.PodSecurity = "baseline" },
			[]string{".tekton/greedy.yaml", "spec.taskRunTemplate.podTemplate: ", "hostNetwork=true", "run-pod-security"}},
		"the Repository's": {func(in *plan.Input) {
			in.Repository.Spec.Settings = &pacv1alpha1.Settings{
				RunCeiling: &pacv1alpha1.RunCeiling{ServiceAccounts: []string{"builder"}},
			}
		}, []string{".tekton/greedy.yaml", `spec.taskRunTemplate.serviceAccountName is "admin"`, "settings.run_ceiling"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := &env{files: []git.File{greedy, pipeline("modest")}}
			in := push()
			c.limit(&in)
			made := w.make(t, in)
			for _, run := range made.Runs {
				if want := run.Pipeline == "greedy" && c.refused != nil; (run.Refused != nil) != want ||
					(run.Manifest == nil) != want {
					t.Errorf("%s: refused %+v, want it refused: %t", run.Pipeline, run.Refused, want)
				}
				for _, says := range c.refused {
					if run.Refused != nil && (run.Refused.Reason != "AboveCeiling" || !strings.Contains(run.Refused.Message, says)) {
						t.Errorf("%s %q does not say %q", run.Refused.Reason, run.Refused.Message, says)
					}
				}
			}
			if len(made.Runs) != 2 {
				t.Errorf("%d runs, want both", len(made.Runs))
			}
		})
	}
}
