// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// The receivers record events until their pods have ended.
func TestRunRefusesEventsThatArriveInTheMeantime(t *testing.T) {
	e := newEnv(t, []runtime.Object{controller(system)})
	e.kube.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		_ = e.own.Tracker().Add(gitEvent("gh-1", running)) // again
		return false, nil, nil
	})
	e.Yes = true
	err := e.Uninstaller.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "add --close-checks") {
		t.Errorf("got %v", err)
	}
	if all := e.deleted(); len(all) > 0 {
		t.Errorf("deleted %q", all)
	}
	e.says("Open checks of events that arrived in the meantime", "event gh-1")
}

func TestCancelAnnotatesOpenEventsOnly(t *testing.T) {
	e := newEnv(t, []runtime.Object{controller(system)}, gitEvent("gh-1", running), gitEvent("gh-2", func(g *v1alpha1.GitEvent) {
		running(g)
		g.Status.Phase, g.Status.Disposition = v1alpha1.PhaseSettled, v1alpha1.DispositionPending
	}))
	e.own.PrependReactor("patch", "gitevents", func(a clienttesting.Action) (bool, runtime.Object, error) {
		// The controller reports the check and settles the event.
		name := a.(clienttesting.PatchAction).GetName() //nolint:forcetypeassert // of this verb
		if name != "gh-1" || !strings.Contains(string(a.(clienttesting.PatchAction).GetPatch()), plumbline.CancelAnnotation) {
			t.Errorf("patched %s with %s", name, a.(clienttesting.PatchAction).GetPatch())
		}
		settled := gitEvent(name, func(g *v1alpha1.GitEvent) {
			running(g)
			g.Status.Phase = v1alpha1.PhaseSettled
			g.Status.Checks[0].Concluded = true
		})
		return true, settled, e.own.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), settled, system)
	})
	e.Yes, e.CloseChecks = true, Cancel
	if err := e.Uninstaller.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.says("Checks that stay open in any case", "event gh-2", "All checks that Plumbline can close are closed.", "Stopped the receivers")
}

func TestHelmUninstallsTheRest(t *testing.T) {
	e := newEnv(t, []runtime.Object{controller(system), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: system, Name: "plumbline", Annotations: map[string]string{"meta.helm.sh/release-name": "ci"},
	}}})
	e.Yes = true
	if err := e.Uninstaller.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.says("Now run: helm -n plumbline uninstall ci", "Then run this command again")
	if all := e.deleted(); len(all) > 0 {
		t.Errorf("deleted %q", all)
	}
}

func TestRunNamesTheMissingRight(t *testing.T) {
	e := newEnv(t, []runtime.Object{controller(system)})
	e.dynamic.PrependReactor("list", "clusterroles", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "clusterroles"}, "",
			errors.New(`User "eve" cannot list resource "clusterroles" in API group "rbac.authorization.k8s.io" at the cluster scope`))
	})
	e.Yes = true
	err := e.Uninstaller.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "lacks the right to list clusterroles.rbac.authorization.k8s.io in all namespaces") {
		t.Errorf("got %v", err)
	}
	if all := e.deleted(); len(all) > 0 {
		t.Errorf("deleted %q before all rights were known", all)
	}
}

func TestPendingOf(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*v1alpha1.GitEvent)
		pending bool
	}{
		"it is not planned":          {func(*v1alpha1.GitEvent) {}, true},
		"its run has not finished":   {running, true},
		"its run has no check yet":   {func(e *v1alpha1.GitEvent) { running(e); e.Status.Checks = nil }, true},
		"its result is not reported": {func(e *v1alpha1.GitEvent) { running(e); e.Status.Runs[0].Result = &v1alpha1.Result{} }, true},
		"everything is reported": {func(e *v1alpha1.GitEvent) {
			running(e)
			e.Status.Runs[0].Result, e.Status.Checks[0].Concluded = &v1alpha1.Result{}, true
		}, false},
		"it cancels others and waits": {func(e *v1alpha1.GitEvent) {
			e.Status.Plan, e.Status.Disposition = &v1alpha1.Plan{}, v1alpha1.DispositionCancels
		}, false},
		"it is settled": {func(e *v1alpha1.GitEvent) { e.Status.Phase = v1alpha1.PhaseSettled }, false},
		"its results were given up": {func(e *v1alpha1.GitEvent) {
			running(e)
			e.Status.Phase, e.Status.Unreported = v1alpha1.PhaseSettled, true
		}, true},
	} {
		if _, pending := pendingOf(gitEvent("gh-1", test.change)); pending != test.pending {
			t.Errorf("%s: open is %v, want %v", name, pending, test.pending)
		}
	}
}
