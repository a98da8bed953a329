// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// G1: a PipelineRun has no finalizer. While Tekton's admission webhook is down, a deleted run is
// gone when the deletion is answered. Its check is cancelled (E3) and the event settled before the
// webhook is back. The test stops a part that all environments share, so it does not run in
// parallel.
func TestDeletedRunIsGoneAtOnce(t *testing.T) {
	env := newClaimedEnvironment(t, setup{receivers: 1, controllers: 1})
	sha := env.pushAccepted(map[string]string{".tekton/run.yaml": onTekton(pipeline("deleted", "push", held))})
	env.awaitCheck(sha, checkName("deleted"), "in_progress", soon)
	run := env.getRun(runName(env.awaitRunsCreated(sha), "deleted"))
	if len(run.Finalizers) != 0 || len(run.OwnerReferences) != 0 {
		t.Errorf("the run has finalizers %q and owners %v, want none", run.Finalizers, run.OwnerReferences)
	}
	restore := env.stopWebhook()
	env.webhookRefusal(run.Name) // shows that it is down
	env.must(env.Tekton.TektonV1().PipelineRuns(env.ci).Delete(env.ctx, run.Name, metav1.DeleteOptions{}))
	if _, err := env.Tekton.TektonV1().PipelineRuns(env.ci).Get(env.ctx, run.Name,
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after its deletion the run is still there: %v", err)
	}
	check := env.awaitCheck(sha, checkName("deleted"), "cancelled", soon)
	if !strings.Contains(check.Text, "was deleted") {
		t.Errorf("the check does not say why: %s", check.Text)
	}
	env.awaitSettled(sha, soon)
	restore()
	env.requireNoFailure(sha)
	env.requireOneCheck(sha, checkName("deleted"))
	env.requireInvariants()
}

// G2: a Repository's namespace with runs in it, one of them unfinished, is gone within a minute of
// its deletion while no process of ours runs and the Git service is down. Afterwards the checks
// are concluded, and no event waits. G1's test shows that the webhook is not needed either.
func TestNamespaceDeletionNeedsNoController(t *testing.T) {
	t.Parallel()
	env := newClaimedEnvironment(t, setup{receivers: 1, controllers: 1})
	sha := env.pushAccepted(map[string]string{
		".tekton/a.yaml": onTekton(pipeline("open", "push", held)), ".tekton/b.yaml": onTekton(pipeline("over", "push")),
	})
	env.awaitCheck(sha, checkName("open"), "in_progress", soon)
	env.awaitCheck(sha, checkName("over"), "success", soon)
	ours := append(slices.Clone(env.receivers), env.controllers...)
	for _, p := range ours {
		env.kill(p)
	}
	away := env.forge.Inject(forge.Fault{Do: forge.ServerError502HTML()})
	env.must(env.Cluster.DeleteNamespace(env.ctx, env.ci))
	env.awaitNamespaceGone(soon)
	if check, _ := env.forge.Current(repoName, sha, checkName("open")); check.Status == "completed" {
		t.Errorf("the check is %s/%s already: the test shows nothing", check.Status, check.Conclusion)
	}
	for _, p := range ours {
		env.must(p.Start(env.ctx))
	}
	away.Remove()
	check := env.awaitCheck(sha, checkName("open"), "completed", afterFault)
	env.awaitSettled(sha, soon)
	env.requireEndedByDeletion(sha, check)
	if check, _ := env.forge.Current(repoName, sha, checkName("over")); check.Conclusion != "success" {
		t.Errorf("the run that was over is %s", check.Conclusion)
	}
	env.requireInvariants() // I-3: a failure is Tekton's
}

// requireEndedByDeletion requires that a check says how its run ended. The namespace's deletion
// takes its objects in any order. Tekton may have ended the run, whose pod was deleted and could
// not be created again, before the run itself was deleted.
func (env *environment) requireEndedByDeletion(sha string, reported check) {
	env.t.Helper()
	event := env.awaitEvent(sha, "the event is there", func(*v1alpha1.GitEvent) error { return nil })
	for _, run := range event.Status.Runs {
		if run.Pipeline != "open" {
			continue
		}
		want, words := "cancelled", "was deleted"
		if run.Result != nil && run.Result.Outcome == v1alpha1.OutcomeFailed {
			want, words = "failure", ""
			if run.Result.Text != "" { // its TaskRuns, which have the reason, still existed
				words = "is being deleted, and this run with it"
			}
		}
		if reported.Conclusion != want || !strings.Contains(reported.Text, words) {
			env.t.Errorf("the run ended %+v, the check says %s: %s", run.Result, reported.Conclusion, reported.Text)
		}
	}
}

// awaitNamespaceGone waits until the Repository's namespace no longer exists.
func (env *environment) awaitNamespaceGone(limit time.Duration) {
	env.t.Helper()
	env.eventually(limit, "the namespace is gone", func() error {
		found, err := env.Kube.CoreV1().Namespaces().Get(env.ctx, env.ci, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = errors.New("it is " + string(found.Status.Phase))
			for _, c := range found.Status.Conditions {
				err = errors.Join(err, errors.New(c.Message))
			}
		}
		return err
	})
}

// stopWebhook kills Tekton's admission webhook until the returned function is called, or the test
// ends.
func (env *environment) stopWebhook() (restore func()) {
	env.t.Helper()
	webhook := shared.cluster.Part(cluster.TektonWebhook)
	restore = func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if webhook.Running() {
			return
		}
		if err := webhook.Start(ctx); err != nil {
			env.t.Errorf("starting Tekton's webhook again: %v", err)
		}
	}
	env.t.Cleanup(restore)
	env.must(webhook.Kill())
	return restore
}
