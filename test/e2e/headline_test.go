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

// patchAttempts is how many refused patches the headline wants to see at least.
const patchAttempts = 3

// broken is one way in which every write on a PipelineRun fails.
type broken struct {
	name   string // begins the names of the pipelines it hits
	reason string // of the condition; "" when the answer has no fixed one
	words  string // the API server's, with RUN for the run's name; "" when they are the client's own
	do     cluster.Action
}

// shapes are answers of docs/errors.md, that of D3 among them, and all of them in make test-all.
// What each of them means is in pkg/fault and test/faults.
func shapes() []broken {
	status := func(name, reason string, status metav1.Status) broken {
		return broken{name: name, reason: reason, words: status.Message, do: cluster.Fault(status)}
	}
	first := []broken{
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
		status("k7-denied", fault.ReasonDenied, cluster.WebhookDenied("validation failed: expected exactly one, got neither: spec.pipelineRef, spec.pipelineSpec")),
		status("k10-policy", fault.ReasonDenied, cluster.PolicyDenied("x", "no-updates", "nobody may")),
		status("k12-rbac", fault.ReasonForbidden, cluster.Forbidden("system:serviceaccount:plumbline:plumbline-controller", "patch", "ci")),
		status("k24-etcd", fault.ReasonUnavailable, cluster.EtcdTimeout()),
		status("k28-timeout", fault.ReasonTimeout, cluster.RequestTimeout()),
		status("k29-throttled", fault.ReasonThrottled, cluster.TooManyRequests()),
		status("k30-unavailable", fault.ReasonUnavailable, cluster.Unavailable()),
		status("k32-unauthorized", fault.ReasonUnauthorized, cluster.Unauthorized()),
		status("k37-complete", fault.ReasonAlreadyComplete, cluster.WebhookDenied(complete)),
	)
}

// D1, D3, D4: while every write on a PipelineRun fails for its whole life, whatever the API server
// answers, the checks of a run that succeeds and of one that fails end as the runs do; the failure
// is logged, counted, a condition and retried, and nothing else. A conflict at each of them is a
// storm of conflicts. In the end everything is applied once.
func TestNoWriteOnPipelineRunsWorks(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1, proxied: true}, reportsWithoutWrites)
}

func reportsWithoutWrites(t *testing.T, w *world) {
	var pushing sync.Mutex                // a push and its delivery belong together
	t.Run("answers", func(t *testing.T) { // parallel subtests end before their parent goes on
		for _, b := range shapes() {
			t.Run(b.name, func(t *testing.T) {
				t.Parallel()
				w := w.in(t)
				armed := w.controller().Proxy.Add(cluster.Rule{
					Match: func(c cluster.Call) bool {
						return c.Resource == "pipelineruns" && (c.Verb == "patch" || c.Verb == "update") && strings.HasPrefix(c.Name, b.name)
					},
					Do: b.do,
				})
				pushing.Lock()
				sha, delivery := w.push(pair(b.name))
				pushing.Unlock()
				w.deliver(delivery, http.StatusAccepted)
				w.livesUnpatched(sha, b)
				armed.Remove()
				w.endsPatched(sha, b.name)
			})
		}
	})
}

// pair is a pipeline that succeeds and one that fails, both held.
func pair(name string) map[string]string {
	return map[string]string{
		".tekton/a.yaml": onTekton(pipeline(name+"-ok", "push", held)),
		".tekton/b.yaml": onTekton(pipeline(name+"-bad", "push", held, fails)),
	}
}

// livesUnpatched follows the runs of a pair to their reported ends while no patch of them works.
func (w *world) livesUnpatched(sha string, b broken) {
	w.t.Helper()
	event := w.created(sha)
	w.checkReaches(sha, checkName(b.name+"-ok"), "in_progress", soon)
	w.checkReaches(sha, checkName(b.name+"-bad"), "in_progress", soon)
	w.unpatched(sha, b)
	w.neverFailed(sha) // the runs are held: so far every failure would be a false one
	w.release(event)
	w.checkReaches(sha, checkName(b.name+"-ok"), "success", afterFault)
	failed := w.checkReaches(sha, checkName(b.name+"-bad"), "failure", afterFault)
	if !failed.Tells("build") {
		w.t.Errorf("the failed check does not name the task build: %s", failed.Text)
	}
	w.unpatched(sha, b)
	for _, write := range w.writes(sha, checkName(b.name+"-ok")) {
		if write.Conclusion == "failure" {
			w.t.Errorf("write %d of the check that succeeded says failure: %v", write.N, write.Body)
		}
	}
	for _, call := range w.calls("patch", b.name) {
		if call.Status == http.StatusOK {
			w.t.Errorf("a patch of %s was accepted: the fault did not last for the run's whole life", call.Name)
		}
	}
}

// unpatched waits until the failing patch shows in every place where it must: patchAttempts,
// condition, metric, Kubernetes Event and log.
func (w *world) unpatched(sha string, b broken) {
	w.t.Helper()
	event := w.eventOf(sha, "condition Annotated is False and the patch was tried again", func(event *v1alpha1.GitEvent) error {
		if n := len(w.calls("patch", b.name)); n < patchAttempts {
			return fmt.Errorf("%d patchAttempts", n)
		}
		condition := event.Status.GetCondition(v1alpha1.GitEventAnnotated)
		if !condition.IsFalse() || condition.Reason != b.reason {
			return fmt.Errorf("condition Annotated is %v, want reason %s", condition, b.reason)
		}
		if n := w.number(w.controller(), patchFailures); n < patchAttempts {
			return fmt.Errorf("%s is %v", patchFailures, n)
		}
		if w.told(event.Name)[b.reason] == 0 {
			return fmt.Errorf("no Kubernetes Event on the Repository has reason %s", b.reason)
		}
		for _, run := range event.Status.Runs {
			if err := w.logsPatchFailure(run.Name, b.words); err != nil {
				return err
			}
		}
		return nil
	})
	w.toldOnce(event.Name)
}

// logsPatchFailure reports whether the controller's log has the error in the words of the issue.
func (w *world) logsPatchFailure(run, words string) error {
	want := fmt.Sprintf("failed to patch pipelinerun %s/%s: %s", w.ci, run, strings.ReplaceAll(words, "RUN", run))
	lines := w.logged(w.controller())
	if slices.ContainsFunc(lines, func(line string) bool { return line == want || words == "" && strings.HasPrefix(line, want) }) {
		return nil
	}
	return fmt.Errorf("no error in the log reads %q; errors: %q", want, lines[max(0, len(lines)-5):])
}

// endsPatched requires that both runs of a pair are patched once that works again, nothing was
// reported anew, and no failure was logged more often than it was met.
func (w *world) endsPatched(sha, name string) {
	w.t.Helper()
	w.settles(sha, afterFault)
	for _, pipeline := range []string{name + "-ok", name + "-bad"} {
		check, _ := w.current(sha, checkName(pipeline))
		w.oneCheck(sha, checkName(pipeline))
		runs := slices.DeleteFunc(w.runs(), func(run pipelinev1.PipelineRun) bool { return !strings.HasPrefix(run.Name, pipeline) })
		if len(runs) != 1 {
			w.t.Fatalf("%d PipelineRuns of %s, want one", len(runs), pipeline)
		}
		w.patched(runs[0].Name, check)
		failure := fmt.Sprintf("failed to patch pipelinerun %s/%s", w.ci, runs[0].Name)
		failed := slices.DeleteFunc(w.logged(w.controller()), func(line string) bool { return !strings.HasPrefix(line, failure) })
		if met := len(w.calls("patch", runs[0].Name)); len(failed) > met {
			w.t.Errorf("%d errors logged for %d patches of %s", len(failed), met, pipeline)
		}
		posts := slices.DeleteFunc(w.writes(sha, checkName(pipeline)), func(made write) bool { return !made.Creates })
		if len(posts) != 1 {
			w.t.Errorf("%d checks of %s were posted, want 1", len(posts), pipeline)
		}
	}
}
