// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// E11: a service that is busy with the commit (GitLab's 409) is retried until it accepts the
// report, once.
func TestBusyServiceIsRetried(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1}, retriesBusyService)
}

func retriesBusyService(_ *testing.T, env *environment) {
	fault := env.git.inject(createCheck, forge.Fault{Count: 4, Do: env.git.says(busy)})
	sha := env.pushAccepted(map[string]string{".tekton/run.yaml": pipeline("busy", "push")})
	env.awaitHits(fault, 4)
	env.awaitCheck(sha, checkName("busy"), "success", afterFault)
	env.awaitSettled(sha, afterFault)
	env.requireOneCheck(sha, checkName("busy"))
	env.requireNoFailure(sha)
}

// E12: GitLab says "Cannot transition status". If it shows the wanted state, the report is done
// after one attempt. If it shows another one, the event's condition says so, the report is
// retried, and the final status is the run's.
func TestStatusTransitionRefusals(t *testing.T) {
	t.Parallel()
	env := newClaimedEnvironment(t, setup{service: gitLab, receivers: 1, controllers: 1})
	t.Run("equal", func(t *testing.T) { equalStateIsDone(t, env.forSubtest(t)) })
	t.Run("different", func(t *testing.T) { differentStateIsRetried(t, env.forSubtest(t)) })
	env.requireInvariants()
}

// equalStateIsDone: another process of ours sets the status to running between the look-up and the
// post.
func equalStateIsDone(t *testing.T, env *environment) {
	release := make(chan struct{})
	late := env.git.inject(createCheck, forge.Fault{Count: 1, Do: forge.Hold(release)})
	sha := env.pushAccepted(map[string]string{".tekton/run.yaml": pipeline("equal", "push", held)})
	env.awaitHits(late, 1)
	event := env.awaitPlanned(sha)
	env.setStatus(sha, checkName("equal"), "running", "Started by another process ("+event.Status.Runs[0].Name+")")
	close(release)
	env.awaitEvent(sha, "what is shown is taken for reported", func(event *v1alpha1.GitEvent) error {
		if !event.Status.GetCondition(v1alpha1.GitEventReported).IsTrue() {
			return fmt.Errorf("conditions %v", event.Status.Conditions)
		}
		return nil
	})
	refused := 0
	for _, write := range env.checkWrites(sha, checkName("equal")) {
		if !write.Applied {
			refused++
		}
	}
	if refused != 1 {
		t.Errorf("%d posts were refused, want the one whose state was there", refused)
	}
	env.releaseRuns(event)
	env.awaitCheck(sha, checkName("equal"), "success", afterFault)
	env.awaitSettled(sha, afterFault)
	env.requireOneCheck(sha, checkName("equal"))
}

func differentStateIsRetried(t *testing.T, env *environment) {
	refuses := env.git.inject(createCheck, forge.Fault{Do: gitlab.CannotTransition400("run", "running")})
	sha := env.pushAccepted(map[string]string{".tekton/run.yaml": pipeline("different", "push", held)})
	env.awaitHits(refuses, 4)
	env.awaitEvent(sha, "the event says that the status was refused", func(event *v1alpha1.GitEvent) error {
		condition := event.Status.GetCondition(v1alpha1.GitEventReported)
		if condition.IsTrue() || condition.GetReason() != fault.ReasonTransition {
			return fmt.Errorf("condition Reported is %v", condition)
		}
		return nil
	})
	if checks := env.git.checks(sha); len(checks) != 0 {
		t.Fatalf("there are checks %v although none can be set: the rest shows nothing", checks)
	}
	refuses.Remove()
	env.awaitCheck(sha, checkName("different"), "in_progress", afterFault)
	env.releaseRuns(env.awaitRunsCreated(sha))
	env.awaitCheck(sha, checkName("different"), "success", afterFault)
	env.awaitSettled(sha, afterFault)
	env.requireOneCheck(sha, checkName("different"))
	env.requireNoFailure(sha)
}

// setStatus sets a commit status with Plumbline's own token.
func (env *environment) setStatus(sha, name, state, description string) {
	env.t.Helper()
	g := env.git.(*onGitLab)
	body, err := json.Marshal(map[string]string{"name": name, "state": state, "description": description})
	env.must(err)
	address := g.url() + "/api/v4/projects/" + url.PathEscape(projectName) + "/statuses/" + sha
	request, err := http.NewRequestWithContext(env.ctx, http.MethodPost, address, bytes.NewReader(body))
	env.must(err)
	request.Header.Set("Private-Token", g.token.Value)
	request.Header.Set("Content-Type", "application/json")
	answer, err := exchange(request)
	env.must(err)
	if answer.status != http.StatusCreated {
		env.t.Fatalf("setting a status is answered %v", answer)
	}
}

// awaitPlanned waits until the event of a commit is planned and its PipelineRuns exist. See
// awaitRunsCreated, which waits until that is recorded with the answer to their first report.
func (env *environment) awaitPlanned(sha string) *v1alpha1.GitEvent {
	env.t.Helper()
	return env.awaitEvent(sha, "its PipelineRuns are there", func(event *v1alpha1.GitEvent) error {
		if len(event.Status.Runs) == 0 {
			return errMissing
		}
		for _, run := range event.Status.Runs {
			if _, err := env.Tekton.TektonV1().PipelineRuns(run.Namespace).Get(env.ctx, run.Name,
				metav1.GetOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
}
