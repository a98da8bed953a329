// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
)

// E4: the Repository is deleted while one run goes on and another one waits to be created. Nothing
// keeps it from going; the run that was not created is cancelled, and the one that goes on ends as
// it does. With a GitHub App that is reported at once. On GitLab the credentials went with the
// Repository: nothing is reported until it is there again. When that is too late, the reports are
// dropped: TestReportsOfADeletedRepositoryAreGivenUp of package gitevent has the ten minutes.
func TestE4TheRepositoryIsDeleted(t *testing.T) {
	t.Parallel()
	forEachService(t, setup{receivers: 1, controllers: 1, proxied: true, flags: []string{"-operator-retry=" + operatorRetry.String()}}, outlivesItsRepository)
}

func outlivesItsRepository(t *testing.T, w *world) {
	w.controller().Proxy.Add(cluster.Rule{
		Match: func(c cluster.Call) bool { return isCreate(c) && strings.HasPrefix(c.Name, "waits") }, Do: cluster.Fault(cluster.WebhookRefused()),
	})
	sha, delivery := w.push(map[string]string{".tekton/a.yaml": pipeline("goes-on", "push", held), ".tekton/b.yaml": pipeline("waits", "push")})
	w.deliver(delivery, http.StatusAccepted)
	w.checkReaches(sha, checkName("goes-on"), "in_progress", soon)
	w.checkReaches(sha, checkName("waits"), "queued", soon)
	var event v1alpha1.GitEvent
	w.eventually(soon, "the run is recorded", func() error { // its check is reported before that
		if event = w.recordOf(delivery); event.Status.Runs[0].UID == "" {
			return errors.New("it has no UID")
		}
		return nil
	})
	w.secretOf(event.Status.Runs[0], 2)
	repositories := w.Plumbline.PipelinesascodeV1alpha1().Repositories(w.ci)
	w.must(repositories.Delete(w.ctx, "app", metav1.DeleteOptions{}))
	if _, err := repositories.Get(w.ctx, "app", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Repository is still there: %v", err)
	}
	w.eventually(soon, "the controller sees that the Repository is gone", func() error {
		now := w.recordOf(delivery)
		if result := now.Status.Runs[1].Result; result == nil || result.Reason != "RepositoryGone" {
			return fmt.Errorf("the run that waits has the result %+v", result)
		}
		return nil
	})
	event.Status.Runs = event.Status.Runs[:1]
	w.secretOf(event.Status.Runs[0], 1) // the garbage collector has taken note: the Repository owns it no more, and it stays
	w.release(&event)
	w.ended(event.Status.Runs[0])
	if w.git.kind() == gitLab {
		if wait := w.waitsBecause(sha, "report", "RepositoryGone"); wait.Class != "Operator" {
			t.Errorf("it waits for %+v, want an operator", wait)
		}
		// The other one may have been reported with the credentials that the same reconcile had
		// read before.
		if check, _ := w.current(sha, checkName("goes-on")); check.Conclusion != "" {
			t.Errorf("the check says %s without credentials", check.Conclusion)
		}
		w.createRepository(w.ci, "app")
	}
	w.checkReaches(sha, checkName("goes-on"), "success", afterFault)
	w.checkReaches(sha, checkName("waits"), "cancelled", afterFault)
	w.settles(sha, afterFault)
	w.neverFailed(sha)
	w.started("goes-on")
}

// secretOf waits until the git-auth secret of a run has so many owners, of which the run is one.
func (w *world) secretOf(run v1alpha1.Run, owners int) {
	w.t.Helper()
	w.eventually(soon, fmt.Sprintf("the secret of the run has %d owners", owners), func() error {
		secret, err := w.Kube.CoreV1().Secrets(w.ci).Get(w.ctx, run.Secret, metav1.GetOptions{})
		if err != nil {
			return err
		}
		has := secret.OwnerReferences
		if len(has) != owners || !slices.ContainsFunc(has, func(o metav1.OwnerReference) bool { return o.UID == run.UID }) {
			return fmt.Errorf("it belongs to %v", has)
		}
		return nil
	})
}
