// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/test/cluster"
)

// patchAttempts is the least number of refused patches that the test waits for.
const patchAttempts = 3

// brokenPatch is one way in which every write on a PipelineRun fails.
type brokenPatch struct {
	name   string // prefix of the names of its pipelines
	reason string // of the condition; "" when the answer has no fixed reason
	words  string // of the API server, with RUN for the run's name; "" when they are the client's own
	do     cluster.Action
}

// patchRefusals are answers of docs/errors.md, D3's among them; make test-all tries all. Their
// meaning is tested in pkg/fault and test/faults.
func patchRefusals() []brokenPatch {
	status := func(name, reason string, status metav1.Status) brokenPatch {
		return brokenPatch{name: name, reason: reason, words: status.Message, do: cluster.Fault(status)}
	}
	first := []brokenPatch{
		status("k1-refused", fault.ReasonWebhookUnavailable, cluster.WebhookRefused()),
		status("k21-conflict", fault.ReasonConflict, cluster.Conflict("x")),
		{name: "k35-dropped", reason: fault.ReasonUnreachable, do: cluster.Drop()},
		status("k37-started", fault.ReasonAlreadyStarted, cluster.RunStarted()),
	}
	if testing.Short() {
		return first
	}
	const complete = "validation failed: invalid value: Once the PipelineRun is complete, no updates are allowed: spec"
	return append(first,
		status("k3-timeout", fault.ReasonWebhookUnavailable, cluster.WebhookTimeout()),
		status("k7-denied", fault.ReasonDenied,
			cluster.WebhookDenied("validation failed: expected exactly one, got neither: spec.pipelineRef, spec.pipelineSpec")),
		status("k10-policy", fault.ReasonDenied, cluster.PolicyDenied("x", "no-updates", "nobody may")),
		status("k12-rbac", fault.ReasonForbidden,
			cluster.Forbidden("system:serviceaccount:plumbline:plumbline-controller", "patch", "ci")),
		status("k24-etcd", fault.ReasonUnavailable, cluster.EtcdTimeout()),
		status("k28-timeout", fault.ReasonTimeout, cluster.RequestTimeout()),
		status("k29-throttled", fault.ReasonThrottled, cluster.TooManyRequests()),
		status("k30-unavailable", fault.ReasonUnavailable, cluster.Unavailable()),
		status("k32-unauthorized", fault.ReasonUnauthorized, cluster.Unauthorized()),
		status("k37-complete", fault.ReasonAlreadyComplete, cluster.WebhookDenied(complete)),
	)
}

// D1, D3, D4: every write on a PipelineRun fails for its whole life, whatever the API server
// answers. The checks of a run that succeeds and of one that fails end as the runs do. The failed
// patch is logged, counted, shown in a condition and retried, and has no other effect. A conflict
// at every write stands for a storm of conflicts. In the end everything is applied once.
func TestChecksAreCorrectWhenRunWritesFail(t *testing.T) {
	forEachService(t, setup{receivers: 1, controllers: 1, proxied: true}, reportsWithoutWrites)
}

func reportsWithoutWrites(t *testing.T, env *environment) {
	var pushing sync.Mutex                // guards a push and its delivery
	t.Run("answers", func(t *testing.T) { // the parent waits for its parallel subtests
		for _, b := range patchRefusals() {
			t.Run(b.name, func(t *testing.T) {
				t.Parallel()
				env := env.forSubtest(t)
				armed := env.controller().Proxy.Add(cluster.Rule{
					Match: func(c cluster.Call) bool {
						return c.Resource == "pipelineruns" && (c.Verb == "patch" || c.Verb == "update") &&
							strings.HasPrefix(c.Name, b.name)
					},
					Do: b.do,
				})
				pushing.Lock()
				sha, delivery := env.push(pipelinePair(b.name))
				pushing.Unlock()
				env.deliver(delivery, http.StatusAccepted)
				env.requireReportedUnpatched(sha, b)
				armed.Remove()
				env.requirePatchedAfterwards(sha, b.name)
			})
		}
	})
}

// pipelinePair returns a pipeline that succeeds and one that fails, both held.
func pipelinePair(name string) map[string]string {
	return map[string]string{
		".tekton/a.yaml": onTekton(pipeline(name+"-ok", "push", held)),
		".tekton/b.yaml": onTekton(pipeline(name+"-bad", "push", held, fails)),
	}
}

// requireReportedUnpatched follows the runs of a pair to their reported ends while none of their
// patches works.
func (env *environment) requireReportedUnpatched(sha string, b brokenPatch) {
	env.t.Helper()
	event := env.awaitRunsCreated(sha)
	env.awaitCheck(sha, checkName(b.name+"-ok"), "in_progress", soon)
	env.awaitCheck(sha, checkName(b.name+"-bad"), "in_progress", soon)
	env.requirePatchFailureShown(sha, b)
	env.requireNoFailure(sha) // the runs are held, so every failure up to here would be false
	env.releaseRuns(event)
	env.awaitCheck(sha, checkName(b.name+"-ok"), "success", afterFault)
	failed := env.awaitCheck(sha, checkName(b.name+"-bad"), "failure", afterFault)
	if !failed.Tells("build") {
		env.t.Errorf("the failed check does not name the task build: %s", failed.Text)
	}
	env.requirePatchFailureShown(sha, b)
	for _, write := range env.checkWrites(sha, checkName(b.name+"-ok")) {
		if write.Conclusion == "failure" {
			env.t.Errorf("write %d of the check that succeeded says failure: %v", write.N, write.Body)
		}
	}
	for _, call := range env.runCalls("patch", b.name) {
		if call.Status == http.StatusOK {
			env.t.Errorf("a patch of %s was accepted: the fault did not last for the run's whole life", call.Name)
		}
	}
}

// requirePatchFailureShown waits until the failing patch shows everywhere: patchAttempts,
// condition, metric, Kubernetes Event and log.
func (env *environment) requirePatchFailureShown(sha string, b brokenPatch) {
	env.t.Helper()
	event := env.awaitEvent(sha, "condition Annotated is False and the patch was tried again",
		func(event *v1alpha1.GitEvent) error {
			if n := len(env.runCalls("patch", b.name)); n < patchAttempts {
				return fmt.Errorf("%d patchAttempts", n)
			}
			condition := event.Status.GetCondition(v1alpha1.GitEventAnnotated)
			if !condition.IsFalse() || condition.Reason != b.reason {
				return fmt.Errorf("condition Annotated is %v, want reason %s", condition, b.reason)
			}
			if n := env.metric(env.controller(), patchFailures); n < patchAttempts {
				return fmt.Errorf("%s is %v", patchFailures, n)
			}
			if env.reportedReasons(event.Name)[b.reason] == 0 {
				return fmt.Errorf("no Kubernetes Event on the Repository has reason %s", b.reason)
			}
			for _, run := range event.Status.Runs {
				if err := env.hasLoggedPatchFailure(run.Name, b.words); err != nil {
					return err
				}
			}
			return nil
		})
	env.requireReportedOnce(event.Name)
}

// hasLoggedPatchFailure reports whether the controller's log has the error with the words.
func (env *environment) hasLoggedPatchFailure(run, words string) error {
	want := fmt.Sprintf("failed to patch pipelinerun %s/%s: %s", env.ci, run, strings.ReplaceAll(words, "RUN", run))
	lines := env.loggedErrors(env.controller())
	if slices.ContainsFunc(lines, func(line string) bool {
		return line == want || words == "" && strings.HasPrefix(line, want)
	}) {
		return nil
	}
	return fmt.Errorf("no error in the log reads %q; errors: %q", want, lines[max(0, len(lines)-5):])
}

// requirePatchedAfterwards requires that both runs of a pair are patched once patches work, that
// nothing is reported again, and that each failure was logged once.
func (env *environment) requirePatchedAfterwards(sha, name string) {
	env.t.Helper()
	env.awaitSettled(sha, afterFault)
	for _, pipeline := range []string{name + "-ok", name + "-bad"} {
		check, _ := env.currentCheck(sha, checkName(pipeline))
		env.requireOneCheck(sha, checkName(pipeline))
		runs := slices.DeleteFunc(env.runs(),
			func(run pipelinev1.PipelineRun) bool { return !strings.HasPrefix(run.Name, pipeline) })
		if len(runs) != 1 {
			env.t.Fatalf("%d PipelineRuns of %s, want one", len(runs), pipeline)
		}
		env.requirePatched(runs[0].Name, check)
		failure := fmt.Sprintf("failed to patch pipelinerun %s/%s", env.ci, runs[0].Name)
		failed := slices.DeleteFunc(env.loggedErrors(env.controller()),
			func(line string) bool { return !strings.HasPrefix(line, failure) })
		if met := len(env.runCalls("patch", runs[0].Name)); len(failed) > met {
			env.t.Errorf("%d errors logged for %d patches of %s", len(failed), met, pipeline)
		}
		posts := slices.DeleteFunc(env.checkWrites(sha, checkName(pipeline)), func(made write) bool { return !made.Creates })
		if len(posts) != 1 {
			env.t.Errorf("%d checks of %s were posted, want 1", len(posts), pipeline)
		}
	}
}
