// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"net/http"
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

// G1: a PipelineRun has no finalizer. While Tekton's admission webhook is down it is gone when its
// deletion has been answered, and its check is cancelled (E3) and the event settled before the
// webhook is back. The test stops a part that all worlds share: it does not run beside others.
func TestG1ADeletedRunIsGoneAtOnce(t *testing.T) {
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()
	sha, delivery := w.push(map[string]string{".tekton/run.yaml": onTekton(pipeline("deleted", "push", held))})
	w.deliver(delivery, http.StatusAccepted)
	w.checkReaches(sha, checkName("deleted"), "in_progress", soon)
	run := w.run(runOf(w.created(sha), "deleted"))
	if len(run.Finalizers) != 0 || len(run.OwnerReferences) != 0 {
		t.Errorf("the run has finalizers %q and owners %v, want none", run.Finalizers, run.OwnerReferences)
	}
	mend := w.withoutWebhook()
	w.refusal(run.Name) // it really is down
	w.must(w.Tekton.TektonV1().PipelineRuns(w.ci).Delete(w.ctx, run.Name, metav1.DeleteOptions{}))
	if _, err := w.Tekton.TektonV1().PipelineRuns(w.ci).Get(w.ctx, run.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after its deletion the run is still there: %v", err)
	}
	check := w.checkReaches(sha, checkName("deleted"), "cancelled", soon)
	if !strings.Contains(check.Text, "was deleted") {
		t.Errorf("the check does not say why: %s", check.Text)
	}
	w.settles(sha, soon)
	mend()
	w.neverFailed(sha)
	w.oneCheck(sha, checkName("deleted"))
	w.invariants()
}

// G2: a Repository's namespace with runs in it, one of which Tekton has not ended, is gone within a
// minute of its deletion while nothing of ours runs and the Git service is away. Afterwards the
// checks are concluded, and nothing waits for what is gone. That the webhook is not needed for it
// either is G1's.
func TestG2ANamespaceGoesWithoutUs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1, controllers: 1})
	w.claimed()
	sha, delivery := w.push(map[string]string{
		".tekton/a.yaml": onTekton(pipeline("open", "push", held)), ".tekton/b.yaml": onTekton(pipeline("over", "push")),
	})
	w.deliver(delivery, http.StatusAccepted)
	w.checkReaches(sha, checkName("open"), "in_progress", soon)
	w.checkReaches(sha, checkName("over"), "success", soon)
	ours := append(slices.Clone(w.receivers), w.controllers...)
	for _, p := range ours {
		w.kill(p)
	}
	away := w.forge.Inject(forge.Fault{Do: forge.ServerError502HTML()})
	w.must(w.Cluster.DeleteNamespace(w.ctx, w.ci))
	w.gone(soon)
	if check, _ := w.forge.Current(repoName, sha, checkName("open")); check.Status == "completed" {
		t.Errorf("the check is %s/%s already: the test shows nothing", check.Status, check.Conclusion)
	}
	for _, p := range ours {
		w.must(p.Start(w.ctx))
	}
	away.Remove()
	check := w.checkReaches(sha, checkName("open"), "completed", afterFault)
	w.settles(sha, soon)
	w.endedByDeletion(sha, check)
	if check, _ := w.forge.Current(repoName, sha, checkName("over")); check.Conclusion != "success" {
		t.Errorf("the run that was over is %s", check.Conclusion)
	}
	w.invariants() // I-3: a failure is Tekton's
}

// endedByDeletion requires that a check says how its run ended. The namespace's deletion takes its
// objects in any order: Tekton may have ended the run, whose pod was deleted and could not be made
// again, before it went itself.
func (w *world) endedByDeletion(sha string, reported check) {
	w.t.Helper()
	event := w.eventOf(sha, "the event is there", func(*v1alpha1.GitEvent) error { return nil })
	for _, run := range event.Status.Runs {
		if run.Pipeline != "open" {
			continue
		}
		want, words := "cancelled", "was deleted"
		if run.Result != nil && run.Result.Outcome == v1alpha1.OutcomeFailed {
			want, words = "failure", ""
			if run.Result.Text != "" { // its TaskRuns, which say why, were still there
				words = "is being deleted, and this run with it"
			}
		}
		if reported.Conclusion != want || !strings.Contains(reported.Text, words) {
			w.t.Errorf("the run ended %+v, the check says %s: %s", run.Result, reported.Conclusion, reported.Text)
		}
	}
}

// gone waits until the Repository's namespace does not exist any more.
func (w *world) gone(limit time.Duration) {
	w.t.Helper()
	w.eventually(limit, "the namespace is gone", func() error {
		found, err := w.Kube.CoreV1().Namespaces().Get(w.ctx, w.ci, metav1.GetOptions{})
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

// withoutWebhook kills Tekton's admission webhook until the returned function is called, or the
// test ends.
func (w *world) withoutWebhook() (mend func()) {
	w.t.Helper()
	webhook := shared.cluster.Part(cluster.TektonWebhook)
	mend = func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if webhook.Running() {
			return
		}
		if err := webhook.Start(ctx); err != nil {
			w.t.Errorf("starting Tekton's webhook again: %v", err)
		}
	}
	w.t.Cleanup(mend)
	w.must(webhook.Kill())
	return mend
}
