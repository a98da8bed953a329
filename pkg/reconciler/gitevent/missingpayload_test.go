// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/store/plans"
)

// An event whose payload was deleted is settled so that its delivery may be processed again, and
// its Repository gets a warning.
func TestMissingPayloadEndsTheEvent(t *testing.T) {
	t.Parallel()
	cel := annotated("cel", `on-cel-expression: 'body.a == "b"'`)
	selected := helloFile("selected")
	selected.Data = []byte(strings.Replace(string(selected.Data), "spec:\n",
		"spec:\n  params: [{name: p, value: '{{ body.a }}'}]\n", 1))
	for name, c := range map[string]struct {
		env  func(*testing.T) *env
		end  v1alpha1.Disposition
		want map[string]status.Conclusion
	}{
		"a comment needs it to know what was said": {func(t *testing.T) *env {
			return commented(t, "/test", helloFile("hello"))
		}, v1alpha1.DispositionRefused, map[string]status.Conclusion{}},
		"an expression needs it": {
			func(t *testing.T) *env { return newEnv(t, cel) }, v1alpha1.DispositionRefused, map[string]status.Conclusion{},
		},
		"a selected pipeline needs it: nothing has failed": {func(t *testing.T) *env { return newEnv(t, selected) },
			v1alpha1.DispositionRefused, map[string]status.Conclusion{"selected": status.Cancelled}},
		"the pipelines that do not need it run": {func(t *testing.T) *env {
			return newEnv(t, cel, helloFile("hello"))
		}, v1alpha1.DispositionRuns, map[string]status.Conclusion{"hello": status.Success}},
		"nobody needs it": {func(t *testing.T) *env { return newEnv(t, helloFile("hello")) },
			v1alpha1.DispositionRuns, map[string]status.Conclusion{"hello": status.Success}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := c.env(t)
			w.dropPayloads()
			var told []string
			_ = w.reconcileTelling(&told)
			w.settle(corev1.ConditionTrue)
			e := w.event()
			if e.Status.Disposition != c.end || len(w.conclusions()) != len(c.want) {
				t.Errorf("it ends as %s (%s) with the checks %v, want %s with %v", e.Status.Disposition, e.Status.Plan.Reason,
					w.conclusions(), c.end, c.want)
			}
			for pipeline, want := range c.want {
				if got := w.conclusions()[pipeline]; got != want {
					t.Errorf("%s: %s, want %s", pipeline, got, want)
				}
			}
			if c.end == v1alpha1.DispositionRefused && (e.Status.Plan.Reason != plans.ReasonPayloadMissing || len(told) == 0 ||
				!strings.Contains(told[0], plans.ReasonPayloadMissing)) {
				t.Errorf("reason %s, told %q: want %s", e.Status.Plan.Reason, told, plans.ReasonPayloadMissing)
			}
		})
	}
}

// A payload that cannot be read at the moment is waited for.
func TestUnreadablePayloadIsNotMissing(t *testing.T) {
	t.Parallel()
	w := newEnv(t, annotated("cel", `on-cel-expression: 'body.a == "b"'`))
	w.setPayload(`{"a": "b"}`)
	w.hook = func(_ int, call string) outcome {
		if call == "get eventpayloads" {
			return outcome{err: apierrors.NewGenericServerResponse(404, "GET", v1alpha1.Resource("eventpayloads"), "push-1-0",
				"404 page not found", 0, true)}
		}
		return outcome{}
	}
	if _, err := w.reconcile(); err == nil || w.event().Status.Plan != nil {
		t.Fatalf("error %v, plan %+v: want a wait", err, w.event().Status.Plan)
	}
	w.hook = nil
	w.settle(corev1.ConditionTrue)
	if w.conclusions()["cel"] != status.Success {
		t.Errorf("checks %v", w.conclusions())
	}
}

// Manifests that were deleted before their runs were created end these as cancelled: their author
// made no mistake.
func TestMissingManifestsCancelUncreatedRuns(t *testing.T) {
	t.Parallel()
	w := newEnv(t, noisy(helloFile("hello")))
	w.hook = func(_ int, call string) outcome {
		if call == "create pipelineruns" {
			return outcome{kill: true}
		}
		return outcome{}
	}
	if killed, err := w.reconcile(); !killed {
		t.Fatalf("not killed: %v", err)
	}
	w.hook = nil
	w.dropPayloads()
	w.settle(corev1.ConditionTrue)
	e := w.event()
	if e.Status.Disposition != v1alpha1.DispositionRefused || e.Status.Plan.Reason != plans.ReasonPayloadMissing ||
		w.conclusions()["hello"] != status.Cancelled {
		t.Errorf("%s %s, checks %v: want it refused and its run cancelled", e.Status.Disposition, e.Status.Plan.Reason,
			w.conclusions())
	}
}

// dropPayloads deletes every EventPayload.
func (w *env) dropPayloads() {
	w.t.Helper()
	resource := v1alpha1.SchemeGroupVersion.WithResource("eventpayloads")
	obj, err := w.own.Tracker().List(resource, v1alpha1.SchemeGroupVersion.WithKind("EventPayload"), system)
	w.must(err)
	list, ok := obj.(*v1alpha1.EventPayloadList)
	if !ok {
		w.t.Fatalf("unexpected %T", obj)
	}
	for _, payload := range list.Items {
		w.must(w.own.Tracker().Delete(resource, system, payload.Name))
	}
}
