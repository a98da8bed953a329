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

// E11: a service that is busy with the commit (GitLab's 409) is asked again until it takes the
// report, once.
func TestE11ABusyServiceIsAskedAgain(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1}, asksABusyServiceAgain)
}

func asksABusyServiceAgain(_ *testing.T, w *world) {
	fault := w.git.inject(createCheck, forge.Fault{Count: 4, Do: w.git.says(busy)})
	sha, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline("busy", "push")})
	w.deliver(delivery, http.StatusAccepted)
	w.hit(fault, 4)
	w.checkReaches(sha, checkName("busy"), "success", afterFault)
	w.settles(sha, afterFault)
	w.oneCheck(sha, checkName("busy"))
	w.neverFailed(sha)
}

// E12: when GitLab says "Cannot transition status" and shows the state that was to be set, that is
// done, with one attempt; when it shows another one, the event says so in a condition and tries
// again, and the end is the run's.
func TestE12CannotTransition(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{service: gitLab, receivers: 1, controllers: 1})
	w.claimed()
	t.Run("equal", func(t *testing.T) { equalIsDone(t, w.in(t)) })
	t.Run("different", func(t *testing.T) { differentIsTriedAgain(t, w.in(t)) })
	w.invariants()
}

// equalIsDone: another process of ours sets the status to running between the look-up and the post.
func equalIsDone(t *testing.T, w *world) {
	release := make(chan struct{})
	late := w.git.inject(createCheck, forge.Fault{Count: 1, Do: forge.Hold(release)})
	sha, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline("equal", "push", held)})
	w.deliver(delivery, http.StatusAccepted)
	w.hit(late, 1)
	event := w.begun(sha)
	w.setStatus(sha, checkName("equal"), "running", "Started by another process ("+event.Status.Runs[0].Name+")")
	close(release)
	w.eventOf(sha, "what is shown is taken for reported", func(event *v1alpha1.GitEvent) error {
		if !event.Status.GetCondition(v1alpha1.GitEventReported).IsTrue() {
			return fmt.Errorf("conditions %v", event.Status.Conditions)
		}
		return nil
	})
	refused := 0
	for _, write := range w.writes(sha, checkName("equal")) {
		if !write.Applied {
			refused++
		}
	}
	if refused != 1 {
		t.Errorf("%d posts were refused, want the one whose state was there", refused)
	}
	w.release(event)
	w.checkReaches(sha, checkName("equal"), "success", afterFault)
	w.settles(sha, afterFault)
	w.oneCheck(sha, checkName("equal"))
}

func differentIsTriedAgain(t *testing.T, w *world) {
	refuses := w.git.inject(createCheck, forge.Fault{Do: gitlab.CannotTransition400("run", "running")})
	sha, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline("different", "push", held)})
	w.deliver(delivery, http.StatusAccepted)
	w.hit(refuses, 4)
	w.eventOf(sha, "the event says that the status was refused", func(event *v1alpha1.GitEvent) error {
		condition := event.Status.GetCondition(v1alpha1.GitEventReported)
		if condition.IsTrue() || condition.GetReason() != fault.ReasonTransition {
			return fmt.Errorf("condition Reported is %v", condition)
		}
		return nil
	})
	if checks := w.git.checks(sha); len(checks) != 0 {
		t.Fatalf("there are checks %v although none can be set: the rest shows nothing", checks)
	}
	refuses.Remove()
	w.checkReaches(sha, checkName("different"), "in_progress", afterFault)
	w.release(w.created(sha))
	w.checkReaches(sha, checkName("different"), "success", afterFault)
	w.settles(sha, afterFault)
	w.oneCheck(sha, checkName("different"))
	w.neverFailed(sha)
}

// setStatus sets a commit status with Plumbline's own token.
func (w *world) setStatus(sha, name, state, description string) {
	w.t.Helper()
	g := w.git.(*onGitLab)
	body, err := json.Marshal(map[string]string{"name": name, "state": state, "description": description})
	w.must(err)
	address := g.url() + "/api/v4/projects/" + url.PathEscape(projectName) + "/statuses/" + sha
	request, err := http.NewRequestWithContext(w.ctx, http.MethodPost, address, bytes.NewReader(body))
	w.must(err)
	request.Header.Set("Private-Token", g.token.Value)
	request.Header.Set("Content-Type", "application/json")
	answer, err := exchange(request)
	w.must(err)
	if answer.status != http.StatusCreated {
		w.t.Fatalf("setting a status is answered %v", answer)
	}
}

// begun waits until the event of a commit is planned and its PipelineRuns are there. That they are
// is recorded with what their first report is answered: see created.
func (w *world) begun(sha string) *v1alpha1.GitEvent {
	w.t.Helper()
	return w.eventOf(sha, "its PipelineRuns are there", func(event *v1alpha1.GitEvent) error {
		if len(event.Status.Runs) == 0 {
			return errMissing
		}
		for _, run := range event.Status.Runs {
			if _, err := w.Tekton.TektonV1().PipelineRuns(run.Namespace).Get(w.ctx, run.Name, metav1.GetOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
}
