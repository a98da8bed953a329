// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/test/cluster"
)

// C6: while a right of the controller's is missing, the check is queued and says so, the
// Repository's condition names what is missing in the API server's words and what to do about it,
// and the creation is tried again slowly. Once it is mended, the run starts by itself.
func TestC6WhatAnAdministratorHasToMend(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{receivers: 1})
	w.startController(true, "-operator-retry="+slowRetry.String())
	w.claimed()
	mend := w.withoutRight("tekton.dev", "pipelineruns", "create")
	sha, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline("unready", "push")})
	w.deliver(delivery, http.StatusAccepted)
	words := []string{
		fmt.Sprintf(`User "system:serviceaccount:%s:plumbline-controller" cannot create resource "pipelineruns" in API group "tekton.dev" in the namespace %q`, w.Namespace, w.ci),
		"grant this right", "config/", "Role",
	}
	w.credentials("False", fault.ReasonForbidden, words...)
	check := w.checkReaches(sha, checkName("unready"), "queued", soon)
	if !containsAll(check.Text, append(words, fault.ReasonForbidden)...) {
		t.Errorf("the check does not say what it waits for: %s", check.Text)
	}
	w.triedSlowly("create pipelineruns")
	w.neverFailed(sha)
	if runs := w.runs(); len(runs) != 0 {
		t.Errorf("%d PipelineRuns, want none", len(runs))
	}
	mend()
	w.checkReaches(sha, checkName("unready"), "success", afterFault)
	w.settles(sha, afterFault)
	w.credentials("True", "NoProblem")
	w.neverFailed(sha)
	w.oneCheck(sha, checkName("unready"))
	w.invariants()
}

// triedSlowly waits for three attempts and requires that they keep their distance. Waits end at
// whole seconds.
func (w *world) triedSlowly(call string) {
	w.t.Helper()
	var attempts []cluster.Call
	w.eventually(soon, "it is tried again", func() error {
		attempts = slices.DeleteFunc(w.controller().Proxy.Calls(), func(c cluster.Call) bool { return nameOf(c) != call || c.Namespace != w.ci })
		if len(attempts) < 3 {
			return fmt.Errorf("%d attempts", len(attempts))
		}
		return nil
	})
	for i := range attempts[1:] {
		if after := attempts[i+1].Time.Sub(attempts[i].Time); after < slowRetry/2 {
			w.t.Errorf("attempt %d was made %v after the one before it, want %v", i+2, after, slowRetry)
		}
	}
}

// withoutRight takes a right from the world's controllers, and returns what gives it back.
func (w *world) withoutRight(group, resource, verb string) (mend func()) {
	w.t.Helper()
	roles := w.Kube.RbacV1().ClusterRoles()
	role, err := roles.Get(w.ctx, "plumbline-controller-"+w.Namespace, metav1.GetOptions{})
	w.must(err)
	whole := role.DeepCopy()
	for i, rule := range role.Rules {
		if slices.Contains(rule.APIGroups, group) && slices.Contains(rule.Resources, resource) {
			role.Rules[i].Verbs = slices.DeleteFunc(rule.Verbs, func(v string) bool { return v == verb })
		}
	}
	_, err = roles.Update(w.ctx, role, metav1.UpdateOptions{})
	w.must(err)
	w.may(group, resource, verb, false)
	return func() {
		whole.ResourceVersion = ""
		_, err := roles.Update(w.ctx, whole, metav1.UpdateOptions{})
		w.must(err)
		w.may(group, resource, verb, true)
	}
}

// may waits until the API server says whether the controller may do something in the Repository's
// namespace.
func (w *world) may(group, resource, verb string, want bool) {
	w.t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + w.Namespace + ":plumbline-controller",
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: w.ci, Group: group, Resource: resource, Verb: verb},
	}}
	w.eventually(soon, "the API server has read the role", func() error {
		answer, err := w.Kube.AuthorizationV1().SubjectAccessReviews().Create(w.ctx, review, metav1.CreateOptions{})
		if err == nil && answer.Status.Allowed != want {
			err = fmt.Errorf("it says %+v", answer.Status)
		}
		return err
	})
}
