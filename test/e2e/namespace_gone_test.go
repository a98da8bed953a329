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
func TestC7TheNamespaceIsTerminating(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1})
	w.startController(true, "-operator-retry="+operatorRetry.String())
	w.claimed()
	lift := w.terminating()
	sha, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline("homeless", "push")})
	w.deliver(delivery, http.StatusAccepted)
	w.refusedAs(sha, "homeless", fault.ReasonNamespaceTerminating, "it is being terminated")
	if creates := w.createsIn(w.ci); len(creates) != 1 {
		t.Errorf("%d attempts to create something in the namespace, want one: %v", len(creates), creates)
	}
	lift()
	w.gone(soon)
	w.namespaceAnew()
	w.eventually(soon, "the delivery is taken again", func() error {
		if status, body := w.post(w.receivers[0], delivery); status != http.StatusAccepted {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
	w.checkReaches(sha, checkName("homeless"), "success", afterFault)
	w.settled(afterFault)
	w.neverFailed(sha)
	w.invariants()
}

// refusedAs requires the end of an event that has no place to run in.
func (w *world) refusedAs(sha, pipeline, reason, words string) {
	w.t.Helper()
	check := w.checkReaches(sha, checkName(pipeline), "cancelled", afterFault)
	if !strings.Contains(check.Text, words) {
		w.t.Errorf("the check does not say %q: %s", words, check.Text)
	}
	w.settles(sha, soon)
	event := w.eventOf(sha, "the event is there", func(*v1alpha1.GitEvent) error { return nil })
	if event.Status.Disposition != v1alpha1.DispositionRefused || event.Status.Plan.Reason != reason {
		w.t.Errorf("the event is %s (%s), want Refused (%s)", event.Status.Disposition, event.Status.Plan.Reason, reason)
	}
	w.neverFailed(sha)
	w.oneCheck(sha, checkName(pipeline))
}

// terminating begins the deletion of the Repository's namespace, and keeps the Repository in it
// until lift is called.
func (w *world) terminating() (lift func()) {
	w.t.Helper()
	keep := func(finalizers string) error {
		_, err := w.Plumbline.PipelinesascodeV1alpha1().Repositories(w.ci).Patch(w.ctx, "app", types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":`+finalizers+`}}`), metav1.PatchOptions{})
		return err
	}
	w.must(keep(`["test.plumbline.dev/keep"]`))
	lift = func() { w.must(keep("null")) }
	w.t.Cleanup(func() { _ = keep("null") }) // also when the test ends before
	w.must(w.Cluster.DeleteNamespace(w.ctx, w.ci))
	w.eventually(soon, "nothing can be created in the namespace", func() error {
		_, err := w.Kube.CoreV1().ConfigMaps(w.ci).Create(w.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"}}, metav1.CreateOptions{})
		if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return fmt.Errorf("the API server says: %w", err)
		}
		return nil
	})
	return lift
}

// createsIn are the controller's attempts to create something in a namespace, Kubernetes Events
// aside.
func (w *world) createsIn(namespace string) []string {
	var creates []string
	for _, call := range w.controller().Proxy.Calls() {
		if call.Verb == "create" && call.Namespace == namespace && call.Resource != "events" {
			creates = append(creates, fmt.Sprintf("%s %s: %d", nameOf(call), call.Name, call.Status))
		}
	}
	return creates
}

// namespaceAnew makes the Repository's namespace and the Repository again.
func (w *world) namespaceAnew() {
	w.t.Helper()
	_, err := w.Kube.CoreV1().Namespaces().Create(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ci}}, metav1.CreateOptions{})
	w.must(err)
	w.createRepository(w.ci, "app")
	w.eventually(soon, "pods can be created in it", func() error {
		_, err := w.Kube.CoreV1().ServiceAccounts(w.ci).Get(w.ctx, "default", metav1.GetOptions{})
		return err
	})
}
