// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// E7: another run of a pipeline on the same commit has another check with its own link. On GitHub
// it is a new check run next to the completed one, which stays as it is. On GitLab, which shows
// one status of a name, a new status takes its place.
func TestAnotherRunHasAnotherCheck(t *testing.T) {
	forBothServices(t, setup{
		receivers: 1, controllers: 1, config: [][3]string{{"plumbline", "tekton-dashboard-url", dashboard}},
	}, showsAnotherRun)
}

func showsAnotherRun(t *testing.T, env *environment) {
	sha, first := env.push(map[string]string{".tekton/run.yaml": pipeline("twice", "push", held)})
	env.deliver(first, http.StatusAccepted)
	env.setSpecStatus(runName(env.awaitRunsCreated(sha), "twice"), pipelinev1.PipelineRunSpecStatusCancelled)
	before := env.awaitCheck(sha, checkName("twice"), "cancelled", soon)
	env.awaitAllSettled(soon)
	second := env.newDelivery()
	env.deliver(second, http.StatusAccepted)
	now := env.awaitCheck(sha, checkName("twice"), "in_progress", soon)
	run := runName(ptr(env.recordOf(second)), "twice")
	if now.ID == before.ID || !strings.HasSuffix(now.DetailsURL, "/"+run) || now.ExternalID != run {
		t.Errorf("the check of run %s is %s, links to %s and is of %q; that of the run before is %s", run, now.ID,
			now.DetailsURL, now.ExternalID, before.ID)
	}
	env.releaseRuns(ptr(env.recordOf(second)))
	env.awaitCheck(sha, checkName("twice"), "success", soon)
	env.awaitAllSettled(soon)
	checks := env.git.checks(sha)
	if len(checks) != 2 {
		t.Fatalf("%d checks of two runs: %+v", len(checks), checks)
	}
	old := checks[0]
	if old.ID != before.ID || old.Conclusion != "cancelled" || old.DetailsURL != before.DetailsURL ||
		old.Replaced != (env.git.kind() == gitLab) {
		t.Errorf("the check of the first run is %+v now and was %+v", old, before)
	}
	env.requireNoFailure(sha)
}

func ptr(event v1alpha1.GitEvent) *v1alpha1.GitEvent { return &event }
