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

// E4: the Repository is deleted during one run while another waits to be created. Nothing delays
// the deletion. The run that was not created is cancelled, and the other ends by itself. With a
// GitHub App the result is reported at once. On GitLab the credentials were deleted with the
// Repository: nothing is reported until it exists again. Reports that come too late are dropped:
// see TestReportsOfADeletedRepositoryAreGivenUp of package gitevent.
func TestRunsOutliveDeletedRepository(t *testing.T) {
	forEachService(t, setup{
		receivers: 1, controllers: 1, proxied: true, flags: []string{"-operator-retry=" + operatorRetry.String()},
	}, runOutlivesRepository)
}

func runOutlivesRepository(t *testing.T, env *environment) {
	env.controller().Proxy.Add(cluster.Rule{
		Match: func(c cluster.Call) bool { return isCreate(c) && strings.HasPrefix(c.Name, "waits") },
		Do:    cluster.Fault(cluster.WebhookRefused()),
	})
	sha, delivery := env.push(map[string]string{
		".tekton/a.yaml": pipeline("goes-on", "push", held), ".tekton/b.yaml": pipeline("waits", "push"),
	})
	env.deliver(delivery, http.StatusAccepted)
	env.awaitCheck(sha, checkName("goes-on"), "in_progress", soon)
	env.awaitCheck(sha, checkName("waits"), "queued", soon)
	var event v1alpha1.GitEvent
	env.eventually(soon, "the run is recorded", func() error { // its check is reported earlier
		if event = env.recordOf(delivery); event.Status.Runs[0].UID == "" {
			return errors.New("it has no UID")
		}
		return nil
	})
	env.awaitSecretOwners(event.Status.Runs[0], 2)
	repositories := env.Plumbline.PipelinesascodeV1alpha1().Repositories(env.ci)
	env.must(repositories.Delete(env.ctx, "app", metav1.DeleteOptions{}))
	if _, err := repositories.Get(env.ctx, "app", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Repository is still there: %v", err)
	}
	env.eventually(soon, "the controller sees that the Repository is gone", func() error {
		now := env.recordOf(delivery)
		if result := now.Status.Runs[1].Result; result == nil || result.Reason != "RepositoryGone" {
			return fmt.Errorf("the run that waits has the result %+v", result)
		}
		return nil
	})
	event.Status.Runs = event.Status.Runs[:1]
	// the garbage collector has removed the Repository as its owner, and the secret stays
	env.awaitSecretOwners(event.Status.Runs[0], 1)
	env.releaseRuns(&event)
	env.awaitRunEnd(event.Status.Runs[0])
	if env.git.kind() == gitLab {
		if wait := env.awaitWaitReason(sha, "report", "RepositoryGone"); wait.Class != "Operator" {
			t.Errorf("it waits for %+v, want an operator", wait)
		}
		// The other one may have been reported with credentials that the same reconcile had read
		// before.
		if check, _ := env.currentCheck(sha, checkName("goes-on")); check.Conclusion != "" {
			t.Errorf("the check says %s without credentials", check.Conclusion)
		}
		env.createRepository(env.ci, "app")
	}
	env.awaitCheck(sha, checkName("goes-on"), "success", afterFault)
	env.awaitCheck(sha, checkName("waits"), "cancelled", afterFault)
	env.awaitSettled(sha, afterFault)
	env.requireNoFailure(sha)
	env.requireOnlyStarted("goes-on")
}

// awaitSecretOwners waits until the git-auth secret of a run has so many owners, one of which is
// the run.
func (env *environment) awaitSecretOwners(run v1alpha1.Run, owners int) {
	env.t.Helper()
	env.eventually(soon, fmt.Sprintf("the secret of the run has %d owners", owners), func() error {
		secret, err := env.Kube.CoreV1().Secrets(env.ci).Get(env.ctx, run.Secret, metav1.GetOptions{})
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
