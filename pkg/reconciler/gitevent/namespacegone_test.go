// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// C7: a namespace that is being deleted ends the event without a failure and without a loop.
func TestNamespaceTerminating(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	denied := apierrors.NewForbidden(pipelinev1.Resource("pipelineruns"), "x",
		errors.New("unable to create new content in namespace team because it is being terminated"))
	denied.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	w.hook = always("create pipelineruns", denied)
	_, _ = w.reconcile()
	if got := w.git.checks["1"].Conclusion; got != status.Cancelled {
		t.Errorf("the check says %q, want cancelled", got)
	}
	if e := w.event(); !e.Settled() || e.Status.Disposition != v1alpha1.DispositionRefused ||
		e.Status.Plan.Reason != fault.ReasonNamespaceTerminating {
		t.Errorf("status %+v, want it settled as Refused", e.Status)
	}
	if n := w.count("create pipelineruns"); n != 1 {
		t.Errorf("%d creates, want one", n)
	}
}

// C7: an event that has created a run before its namespace was deleted still is an event with runs.
func TestNamespaceTerminatingBetweenTwoRuns(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"), helloFile("world"))
	denied := apierrors.NewForbidden(pipelinev1.Resource("pipelineruns"), "x", errors.New("unable to create new content"))
	denied.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	w.hook = func(int, string) outcome {
		creates := 0
		for _, call := range w.calls {
			if call == "create pipelineruns" {
				creates++
			}
		}
		if creates == 2 && w.calls[len(w.calls)-1] == "create pipelineruns" {
			return outcome{err: denied}
		}
		return outcome{}
	}
	w.settle(corev1.ConditionTrue)
	if diff := cmp.Diff(map[string]status.Conclusion{"hello": status.Success, "world": status.Cancelled},
		w.conclusions()); diff != "" || w.event().Status.Disposition != v1alpha1.DispositionRuns {
		t.Errorf("disposition %s, conclusions (-want +got):\n%s", w.event().Status.Disposition, diff)
	}
}

// C6, K18: a missing namespace is waited for, with the API server's message and what to do. If the
// Repository is gone with it, the event is refused.
func TestNamespaceMissing(t *testing.T) {
	t.Parallel()
	missing := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 404, Reason: metav1.StatusReasonNotFound,
		Message: `namespaces "team" not found`,
		Details: &metav1.StatusDetails{Kind: "namespaces", Name: "team"}}}
	t.Run("for a moment", func(t *testing.T) {
		t.Parallel()
		w := newEnv(t, helloFile("hello"))
		w.hook = always("create pipelineruns", missing)
		for range 3 {
			_, _ = w.reconcile()
		}
		wait := w.event().Status.Waits
		if len(wait) != 1 || wait[0].Reason != fault.ReasonNamespaceMissing ||
			!strings.Contains(wait[0].Message, `namespaces "team" not found: create`) {
			t.Errorf("waits %+v", wait)
		}
		if got := w.git.checks["1"]; got.State != status.Queued || w.count("create pipelineruns") != 1 {
			t.Errorf("%d creates, the check is %v: want one and a queued check", w.count("create pipelineruns"), got)
		}
		w.hook = nil
		w.settle(corev1.ConditionTrue)
		w.wantSuccess()
	})
	t.Run("with its Repository", func(t *testing.T) {
		t.Parallel()
		w := newEnv(t, helloFile("hello"))
		w.hook = always("create pipelineruns", missing)
		w.bindProject(v1alpha1.ProjectIdentity{ID: 5})
		// the cache still has it
		w.must(w.own.Tracker().Delete(pacv1alpha1.SchemeGroupVersion.WithResource("repositories"), tenant, "app"))
		_, _ = w.reconcile()
		if e := w.event(); !e.Settled() || e.Status.Disposition != v1alpha1.DispositionRefused ||
			e.Status.Plan.Reason != credentials.ReasonRepositoryGone || w.git.checks["1"].Conclusion != status.Cancelled {
			t.Errorf("status %+v, checks %v: want it settled as Refused with a cancelled check", e.Status, w.git.checks)
		}
	})
}

// C6, K19: while a kind is not served, a 404 says nothing about an object: no run counts as
// deleted, no Repository as gone, no global settings as absent, and no patch as needless.
func TestUnservedKindIsNotGone(t *testing.T) {
	t.Parallel()
	unserved := apierrors.NewGenericServerResponse(404, "get", pipelinev1.Resource("pipelineruns"), "",
		"404 page not found", 0, true)
	t.Run("the PipelineRun", func(t *testing.T) {
		t.Parallel()
		w := newEnv(t, helloFile("hello"))
		_, _ = w.reconcile()
		run := w.runs()[0]
		resource := pipelinev1.SchemeGroupVersion.WithResource("pipelineruns")
		w.must(w.tekton.Tracker().Delete(resource, tenant, run.Name)) // so no cache has it
		w.hook = always("get pipelineruns", unserved)
		_, _ = w.reconcile()
		if got := w.git.checks["1"]; got.Conclusion != "" || w.event().Settled() {
			t.Errorf("the check is %v, the event %+v: want both open", got, w.event().Status)
		}
		w.hook = nil
		w.must(w.tekton.Tracker().Add(&run))
		w.settle(corev1.ConditionTrue)
		w.wantSuccess()
	})
	t.Run("the Repository", func(t *testing.T) {
		t.Parallel()
		w := newEnv(t, helloFile("hello"))
		// so that it is read live
		w.repository = func(r *pacv1alpha1.Repository) { r.Spec.URL = "https://git.example/acme/other" }
		w.hook = always("get repositories", unserved)
		_, _ = w.reconcile()
		if e := w.event(); e.Status.Plan != nil || len(e.Status.Waits) != 1 ||
			e.Status.Waits[0].Reason != fault.ReasonNotServed {
			t.Errorf("status %+v, want a wait and no plan", e.Status)
		}
		w.hook, w.repository = nil, nil
		w.settle(corev1.ConditionTrue)
		w.wantSuccess()
	})
	t.Run("the patch", func(t *testing.T) {
		t.Parallel()
		w := newEnv(t, helloFile("hello"))
		w.hook = always("patch pipelineruns", unserved)
		_, _ = w.reconcile()
		if condition := w.event().Status.GetCondition(v1alpha1.GitEventAnnotated); !condition.IsFalse() ||
			condition.Reason != fault.ReasonNotServed {
			t.Errorf("condition Annotated is %v, want it to wait", condition)
		}
		w.hook = nil
		w.settle(corev1.ConditionTrue)
		w.wantSuccess()
	})
}
