// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/store/blob"
)

// See docs/adr/0023: the API server lets no account change or add to an event's delivery and plan,
// nor settle an event that still stores its payload. A write of the status without the payload
// leaves the payload in place.
func TestEventContentIsImmutable(t *testing.T) {
	t.Parallel()
	env := newClaimedEnvironment(t, setup{receivers: 1, controllers: 1})
	env.must(env.controller().Kill())
	_, d := env.push(map[string]string{".tekton/push.yaml": pipeline("hello", "push")})
	env.deliver(d, http.StatusAccepted)
	events, name := env.Plumbline.PlumblineV1alpha1().GitEvents(env.Namespace), env.events()[0].Name
	patch := func(text string) error {
		_, err := events.Patch(env.ctx, name, types.MergePatchType, []byte(text), metav1.PatchOptions{})
		return err
	}
	status := func(change func(*v1alpha1.GitEventStatus)) error {
		event, err := events.Get(env.ctx, name, metav1.GetOptions{})
		env.must(err)
		event.Payload, event.Spec.SHA = nil, "" // as an informer's copy has it
		change(&event.Status)
		_, err = events.UpdateStatus(env.ctx, event, metav1.UpdateOptions{})
		return err
	}
	refused := func(what string, err error) {
		t.Helper()
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v, want it refused", what, err)
		}
	}
	settle := func(s *v1alpha1.GitEventStatus) { s.Phase, s.Plan.Manifests = v1alpha1.PhaseSettled, nil }

	another := `{"spec":{"sha":"1234567890123456789012345678901234567890"},"status":{"outcome":"Running","phase":"Settled"}}`
	refused("changing what was received before it has a status", patch(another))
	env.must(status(func(s *v1alpha1.GitEventStatus) {
		s.Plan = &v1alpha1.Plan{Reason: "Selected", Manifests: []byte("x")}
	}))
	held := env.events()[0]
	if body, err := blob.Unpack(held.Payload, held.Spec.Payload); err != nil || held.Spec.Payload.Chunks != 0 {
		t.Errorf("after a write of the status the event holds %d bytes (%v) of its payload %+v", len(body), err,
			held.Spec.Payload)
	}
	refused("another payload", patch(`{"payload":"eA=="}`))
	refused("dropping the manifests", status(func(s *v1alpha1.GitEventStatus) { s.Plan.Manifests = nil }))
	refused("dropping the plan", status(func(s *v1alpha1.GitEventStatus) { s.Plan = nil }))
	refused("settling an event with its payload", status(settle))
	refused("changing what was received", patch(`{"spec":{"payload":{"chunks":1}}}`))
	refused("changing what was received together with the status", patch(another))
	for _, owner := range held.ManagedFields {
		if fields := owner.FieldsV1.GetRawString(); strings.Contains(fields, "f:sha") || strings.Contains(fields, "f:plan") {
			t.Errorf("the API server keeps the owners of fields: %s", fields)
		}
	}
	env.must(patch(`{"payload":null}`))
	env.must(patch(`{"payload":null}`))
	refused("a payload where there is none", patch(`{"payload":"eA=="}`))
	env.must(status(settle))
	if left := env.events()[0]; left.Spec.SHA != held.Spec.SHA || left.Spec.SHA == "" {
		t.Errorf("a write of the status has changed the commit to %q", left.Spec.SHA)
	}
	if left := env.events()[0]; left.Payload != nil || left.Status.Plan.Manifests != nil ||
		left.Status.Phase != v1alpha1.PhaseSettled {
		t.Errorf("the stub is %+v", left)
	}
}
