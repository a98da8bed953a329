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

// C7: a push arrives while the Repository's namespace is terminating, kept by a finalizer. The
// controller tries once to create something there, settles the event as refused, and cancels its
// check with the reason. When the namespace exists again, a redelivery is processed.
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

// requireRefused requires the end of an event whose namespace is missing.
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

// deleteNamespaceHeld starts the deletion of the Repository's namespace, and keeps the Repository
// in it until lift is called.
func (env *environment) deleteNamespaceHeld() (lift func()) {
	env.t.Helper()
	keep := func(finalizers string) error {
		_, err := env.Plumbline.PipelinesascodeV1alpha1().Repositories(env.ci).Patch(env.ctx, "app", types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":`+finalizers+`}}`), metav1.PatchOptions{})
		return err
	}
	env.must(keep(`["test.plumbline.dev/keep"]`))
	lift = func() { env.must(keep("null")) }
	env.t.Cleanup(func() { _ = keep("null") }) // also when the test ends early
	env.must(env.Cluster.DeleteNamespace(env.ctx, env.ci))
	env.eventually(soon, "nothing can be created in the namespace", func() error {
		_, err := env.Kube.CoreV1().ConfigMaps(env.ci).Create(env.ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"}}, metav1.CreateOptions{})
		if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return fmt.Errorf("the API server says: %w", err)
		}
		return nil
	})
	return lift
}

// createAttempts returns the controller's attempts to create something in a namespace, except
// Kubernetes Events.
func (env *environment) createAttempts(namespace string) []string {
	var creates []string
	for _, call := range env.controller().Proxy.Calls() {
		if call.Verb == "create" && call.Namespace == namespace && call.Resource != "events" {
			creates = append(creates, fmt.Sprintf("%s %s: %d", nameOf(call), call.Name, call.Status))
		}
	}
	return creates
}

// recreateNamespace creates the Repository's namespace and the Repository again.
func (env *environment) recreateNamespace() {
	env.t.Helper()
	env.must(errOf(env.Kube.CoreV1().Namespaces().Create(env.ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: env.ci}}, metav1.CreateOptions{})))
	env.createRepository(env.ci, "app")
	env.eventually(soon, "pods can be created in it", func() error {
		_, err := env.Kube.CoreV1().ServiceAccounts(env.ci).Get(env.ctx, "default", metav1.GetOptions{})
		return err
	})
}
