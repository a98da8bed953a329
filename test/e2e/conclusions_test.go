// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// E1: a check succeeds only if its run has Succeeded=True. The checks of a run that fails, one
// that times out and one that is cancelled never say success, and each ends as Tekton ended its
// run. One more run succeeds.
func TestOnlySuccessIsSuccess(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1}, onlySuccessIsSuccess)
}

func onlySuccessIsSuccess(t *testing.T, env *environment) {
	sha := env.pushAccepted(map[string]string{
		".tekton/a.yaml": onTekton(pipeline("succeeds", "push")),
		".tekton/b.yaml": onTekton(pipeline("fails", "push", fails)),
		".tekton/c.yaml": strings.Replace(onTekton(pipeline("times-out", "push", held)), "spec:\n",
			"spec:\n  timeouts: {pipeline: 2s}\n", 1),
		".tekton/d.yaml": onTekton(pipeline("is-cancelled", "push", held)),
	})
	event := env.awaitRunsCreated(sha)
	env.setSpecStatus(runName(event, "is-cancelled"), pipelinev1.PipelineRunSpecStatusCancelled)
	for _, want := range []struct{ pipeline, conclusion, words string }{
		{"succeeds", "success", "build"},
		{"fails", "failure", "build"},
		{"times-out", "failure", "timed out"},
		{"is-cancelled", "cancelled", "was cancelled"},
	} {
		check := env.awaitCheck(sha, checkName(want.pipeline), want.conclusion, soon)
		// Tekton may end the PipelineRun before its TaskRun. Then there is only the PipelineRun's
		// message.
		ended := want.pipeline == "times-out" && check.Tells("failed to finish within")
		if !check.Tells(want.words) && !ended {
			t.Errorf("check %q lacks the words %q: %s", want.pipeline, want.words, check.Text)
		}
		isTrue := succeeded(env.getRun(runName(event, want.pipeline))) == corev1.ConditionTrue
		if isTrue != (want.conclusion == "success") {
			t.Errorf("run %q has Succeeded=%s and check %s", want.pipeline, succeeded(env.getRun(runName(event, want.pipeline))),
				want.conclusion)
		}
		for _, write := range env.checkWrites(sha, checkName(want.pipeline)) {
			if write.Conclusion != "" && write.Conclusion != want.conclusion {
				t.Errorf("write %d of check %q says %s, want only %s", write.N, want.pipeline, write.Conclusion, want.conclusion)
			}
		}
	}
	env.awaitSettled(sha, soon)
}

// E2: a run whose spec.status asks to be cancelled or stopped is in progress until Tekton has
// ended it, also for a process that sees it for the first time; then it is cancelled. Its finally
// task, or for Cancelled its status, is held.
func TestCancellingRunIsInProgress(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1}, cancellingIsInProgress)
}

func cancellingIsInProgress(t *testing.T, env *environment) {
	asks := map[string]pipelinev1.PipelineRunSpecStatus{
		"cancelled":         pipelinev1.PipelineRunSpecStatusCancelled,
		"cancelled-finally": pipelinev1.PipelineRunSpecStatusCancelledRunFinally,
		"stopped-finally":   pipelinev1.PipelineRunSpecStatusStoppedRunFinally,
	}
	finally := "    finally:\n      - name: tidy\n        taskSpec:\n          steps:\n            - name: step\n              image: busybox\n              script: exit 0\n"
	files := map[string]string{}
	for name := range asks {
		files[".tekton/"+name+".yaml"] = onTekton(pipeline(name, "push", held)) + finally
	}
	sha := env.pushAccepted(files)
	event := env.awaitRunsCreated(sha)
	for name := range asks {
		env.awaitCheck(sha, checkName(name), "in_progress", soon)
	}
	thaw := env.freezeStatus(runName(event, "cancelled"))
	for name, ask := range asks {
		env.setSpecStatus(runName(event, name), ask)
	}
	for _, name := range []string{"cancelled-finally", "stopped-finally"} {
		env.eventually(soon, "Tekton has seen that it is to be stopped",
			func() error { return env.isStopping(runName(event, name)) })
	}
	env.restart(env.controllers[0])
	env.eventually(afterFault, "the new process has reconciled the event", func() error {
		page, err := installation.Fetch(env.ctx, env.controllers[0].Metrics)
		for _, line := range strings.Split(string(page), "\n") {
			if containsAll(line, "kn_workqueue_process_duration_seconds_count", `"gitevents"`) &&
				!strings.HasSuffix(line, " 0") {
				return nil
			}
		}
		return errors.Join(errMissing, err)
	})
	for name := range asks {
		if status := succeeded(env.getRun(runName(event, name))); status != corev1.ConditionUnknown {
			t.Fatalf("run %s has Succeeded=%s already: the test shows nothing", name, status)
		}
		if check, _ := env.currentCheck(sha, checkName(name)); check.Status != "in_progress" {
			t.Errorf("check %s is %s/%s while its run has Succeeded=Unknown", name, check.Status, check.Conclusion)
		}
	}
	thaw()
	env.releaseRuns(event)
	for name := range asks {
		env.awaitCheck(sha, checkName(name), "cancelled", afterFault)
		env.requireOneCheck(sha, checkName(name))
	}
	env.requireNoFailure(sha)
	env.awaitSettled(sha, soon)
}

// E3: a PipelineRun is deleted before its end while the forge is down and the controller is
// killed. Once both are back, the check is cancelled with the reason.
func TestDeletedRunCancelsCheck(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1}, deletedRunIsCancelled)
}

func deletedRunIsCancelled(t *testing.T, env *environment) {
	sha := env.pushAccepted(map[string]string{".tekton/run.yaml": pipeline("deleted", "push", held)})
	run := runName(env.awaitRunsCreated(sha), "deleted")
	env.awaitCheck(sha, checkName("deleted"), "in_progress", soon)
	down := env.git.inject(anything, forge.Fault{Do: forge.ServerError502HTML()})
	env.must(env.Tekton.TektonV1().PipelineRuns(env.ci).Delete(env.ctx, run, metav1.DeleteOptions{}))
	env.awaitHits(down, 1)
	env.restart(env.controllers[0])
	down.Remove()
	check := env.awaitCheck(sha, checkName("deleted"), "cancelled", afterFault)
	if !strings.Contains(check.Text, "was deleted") {
		t.Errorf("the check does not say why: %s", check.Text)
	}
	env.awaitSettled(sha, soon)
	env.requireNoFailure(sha)
	env.requireOneCheck(sha, checkName("deleted"))
	env.requireRunCount(0)
}

// runName returns the name of a pipeline's run.
func runName(event *v1alpha1.GitEvent, pipeline string) string {
	for _, run := range event.Status.Runs {
		if run.Pipeline == pipeline {
			return run.Name
		}
	}
	return ""
}

// setSpecStatus sets spec.status of a run.
func (env *environment) setSpecStatus(run string, status pipelinev1.PipelineRunSpecStatus) {
	env.t.Helper()
	_, err := env.Tekton.TektonV1().PipelineRuns(env.ci).Patch(env.ctx, run, types.MergePatchType,
		[]byte(fmt.Sprintf(`{"spec":{"status":%q}}`, status)), metav1.PatchOptions{})
	env.must(err)
}

// isStopping returns nil once Tekton's status of a run shows that it was asked to stop.
func (env *environment) isStopping(run string) error {
	for _, condition := range env.getRun(run).Status.Conditions {
		if condition.Type == "Succeeded" && condition.Reason != "Running" && condition.Reason != "Started" {
			return nil
		}
	}
	return fmt.Errorf("its conditions are %v", env.getRun(run).Status.Conditions)
}

// freezeStatus keeps Tekton from writing the status of one run until thaw.
func (env *environment) freezeStatus(run string) (thaw func()) {
	env.t.Helper()
	p := policy{
		operation: "UPDATE", resource: "pipelineruns/status", message: "frozen by the test",
		condition:  fmt.Sprintf("request.namespace == %q && request.name == %q", env.ci, run),
		expression: "false",
	}
	return env.enforcePolicy(p, func() error {
		_, err := env.Tekton.TektonV1().PipelineRuns(env.ci).Patch(env.ctx, run, types.MergePatchType,
			[]byte(`{"status":{}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "status")
		return err
	})
}
