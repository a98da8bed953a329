// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// C7: a push comes in while the Repository's namespace is terminating, and a finalizer keeps it so:
// one attempt is made to create something there, the event is settled as refused, and its check is
// cancelled and says why. When the namespace is made anew, the same delivery is processed when it
// is delivered again.
func TestTerminatingNamespaceCancelsCheck(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t, setup{receivers: 1})
	env.startController(true, "-operator-retry="+operatorRetry.String())
	env.awaitClaimed()
	lift := env.deleteNamespaceHeld()
	sha, delivery := env.push(map[string]string{".tekton/run.yaml": pipeline("homeless", "push")})
	env.deliver(delivery, http.StatusAccepted)
	env.requireRefused(sha, "homeless", fault.ReasonNamespaceTerminating, "it is being terminated")
	if creates := env.createAttempts(env.ci); len(creates) != 1 {
		t.Errorf("%d attempts to create something in the namespace, want one: %v", len(creates), creates)
	}
	lift()
	env.awaitNamespaceGone(soon)
	env.recreateNamespace()
	env.eventually(soon, "the delivery is taken again", func() error {
		if status, body := env.post(env.receivers[0], delivery); status != http.StatusAccepted {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
	env.awaitCheck(sha, checkName("homeless"), "success", afterFault)
	env.awaitAllSettled(afterFault)
	env.requireNoFailure(sha)
	env.requireInvariants()
}

// requireRefused requires the end of an event that has no place to run in.
func (env *environment) requireRefused(sha, pipeline, reason, words string) {
	env.t.Helper()
	check := env.awaitCheck(sha, checkName(pipeline), "cancelled", afterFault)
	if !strings.Contains(check.Text, words) {
		env.t.Errorf("the check does not say %q: %s", words, check.Text)
	}
	env.awaitSettled(sha, soon)
	event := env.awaitEvent(sha, "the event is there", func(*v1alpha1.GitEvent) error { return nil })
	if event.Status.Disposition != v1alpha1.DispositionRefused || event.Status.Plan.Reason != reason {
		env.t.Errorf("the event is %s (%s), want Refused (%s)", event.Status.Disposition, event.Status.Plan.Reason, reason)
	}
	env.requireNoFailure(sha)
	env.requireOneCheck(sha, checkName(pipeline))
}

// deleteNamespaceHeld begins the deletion of the Repository's namespace, and keeps the Repository in it
// until lift is called.
func (env *environment) deleteNamespaceHeld() (lift func()) {
	env.t.Helper()
	keep := func(finalizers string) error {
		_, err := env.Plumbline.PipelinesascodeV1alpha1().Repositories(env.ci).Patch(env.ctx, "app", types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":`+finalizers+`}}`), metav1.PatchOptions{})
		return err
	}
	env.must(keep(`["test.plumbline.dev/keep"]`))
	lift = func() { env.must(keep("null")) }
	env.t.Cleanup(func() { _ = keep("null") }) // also when the test ends before
	env.must(env.Cluster.DeleteNamespace(env.ctx, env.ci))
	env.eventually(soon, "nothing can be created in the namespace", func() error {
		_, err := env.Kube.CoreV1().ConfigMaps(env.ci).Create(env.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"}}, metav1.CreateOptions{})
		if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return fmt.Errorf("the API server says: %w", err)
		}
		return nil
	})
	return lift
}

// createAttempts are the controller's attempts to create something in a namespace, Kubernetes Events
// aside.
func (env *environment) createAttempts(namespace string) []string {
	var creates []string
	for _, call := range env.controller().Proxy.Calls() {
		if call.Verb == "create" && call.Namespace == namespace && call.Resource != "events" {
			creates = append(creates, fmt.Sprintf("%s %s: %d", nameOf(call), call.Name, call.Status))
		}
	}
	return creates
}

// recreateNamespace makes the Repository's namespace and the Repository again.
func (env *environment) recreateNamespace() {
	env.t.Helper()
	env.must(errOf(env.Kube.CoreV1().Namespaces().Create(env.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: env.ci}}, metav1.CreateOptions{})))
	env.createRepository(env.ci, "app")
	env.eventually(soon, "pods can be created in it", func() error {
		_, err := env.Kube.CoreV1().ServiceAccounts(env.ci).Get(env.ctx, "default", metav1.GetOptions{})
		return err
	})
}
