// SPDX-License-Identifier: Apache-2.0

package livecampaign

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// An interrupt while patches are refused removes the binding first and then the policy. A call that
// fails is repeated.
func TestAnInterruptedCampaignRemovesItsPolicy(t *testing.T) {
	t.Parallel()
	kube, out := fake.NewClientset(), &output{}
	c := newTest(out, kube, "policy")
	failed := false
	kube.PrependReactor("delete", "validatingadmissionpolicybindings",
		func(clienttesting.Action) (bool, runtime.Object, error) {
			first := !failed
			failed = true
			return first, nil, errors.New("the API server is away")
		})
	ctx, interrupt := context.WithCancel(t.Context())
	kube.PrependReactor("create", "validatingadmissionpolicybindings",
		func(clienttesting.Action) (bool, runtime.Object, error) {
			time.AfterFunc(10*time.Millisecond, interrupt)
			return false, nil, nil
		})
	if err := c.policy.begin(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.policy.inject(ctx); err != nil {
		t.Error(err)
	}
	if err := c.policy.remove(ctx); err != nil {
		t.Error(err)
	}
	policies, err := kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(t.Context(), metav1.ListOptions{})
	bindings, err2 := kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().List(t.Context(),
		metav1.ListOptions{})
	if len(policies.Items)+len(bindings.Items) > 0 || err != nil || err2 != nil || !failed || c.policy.on.Load() {
		t.Errorf("left: %v, %v; a delete has failed: %v", policies.Items, bindings.Items, failed)
	}
}

// The campaign removes the binding even if the API server is away for longer than one attempt
// takes, has not read its roles yet, or has a proxy that answers for it. Otherwise the API server
// would refuse patches for the rest of the campaign, when refusals are no longer expected.
func TestPatchesAreAcceptedAgainAfterAnOutage(t *testing.T) {
	t.Parallel()
	bindings := schema.GroupResource{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicybindings"}
	for name, answer := range map[string]error{
		"away":          errors.New("the API server is away"),
		"not yet ready": apierrors.NewForbidden(bindings, "", errors.New("not yet ready to handle request")),
		"a proxy's 404": apierrors.NewGenericServerResponse(404, "delete", bindings, "", "default backend - 404", 0, true),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kube := fake.NewClientset()
			c := newTest(&output{}, kube, "policy")
			c.policy.hold, c.policy.limit = time.Millisecond, time.Millisecond
			failed, expected := false, false
			kube.PrependReactor("delete", bindings.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
				first := !failed
				failed, expected = true, c.policy.on.Load()
				return first, nil, answer
			})
			if err := c.policy.inject(t.Context()); err != nil || !expected {
				t.Errorf("it ends with %v; when the binding was deleted it was still expected: %v", err, expected)
			}
			list, err := kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().List(t.Context(),
				metav1.ListOptions{})
			if err != nil || len(list.Items) > 0 {
				t.Errorf("left: %v, %v", list.Items, err)
			}
		})
	}
}

// An object that could not be removed is not created.
func TestWhatMayNotBeDeletedIsNotPlanned(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"} {
		kube := fake.NewClientset()
		kube.PrependReactor("delete", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no such right"))
		})
		if plan, err := newTest(&output{}, kube, "policy").policy.prepare(t.Context()); !apierrors.IsForbidden(err) {
			t.Errorf("%s may not be deleted; it is planned: %s, %v", resource, plan, err)
		}
	}
}

// A campaign that makes other faults does not begin either while patches of the canary may be
// refused.
func TestWhatACampaignHasLeftKeepsAnyOtherAway(t *testing.T) {
	t.Parallel()
	kube, out := fake.NewClientset(), &output{}
	if err := newTest(out, kube, "policy").policy.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := newTest(out, kube, "pods").Plan(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "livecampaign --clean --namespace canary --repository app") {
		t.Errorf("it is told %v", err)
	}
}

// The policy of another campaign is not removed, and its owner is told how to.
func TestASecondCampaignLeavesTheFirstAlone(t *testing.T) {
	t.Parallel()
	kube, out := fake.NewClientset(), &output{}
	if err := newTest(out, kube, "policy").policy.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := newTest(out, kube, "policy")
	if _, err := second.policy.prepare(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "livecampaign --clean --namespace canary --repository app") {
		t.Errorf("it is told %v", err)
	}
	if err := second.Run(t.Context()); !apierrors.IsAlreadyExists(err) {
		t.Errorf("it ends with %v", err)
	}
	list, err := kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Errorf("%d policies, %v; want the first one's", len(list.Items), err)
	}
}
