// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/test/cluster"
)

// unready is something that an administrator has to mend before PipelineRuns can be created.
type unready struct {
	reason string
	// words are in the Repository's condition and in the check; NS is the Repository's namespace, USER the controller.
	words []string
	// call is what is refused.
	call string
	// refuse makes it so; the function that it returns is the administrator.
	refuse func(w *world) (mend func())
}

// C6: while a right of the controller's is missing, the check is queued and says so, the Repository's condition names what is missing in the API server's words and what to do
// about it, and the creation is tried again slowly. Once it is mended, the run starts by itself.
func TestC6WhatAnAdministratorHasToMend(t *testing.T) {
	t.Parallel()
	for name, u := range map[string]unready{
		"the right to create PipelineRuns": {
			reason: fault.ReasonForbidden, call: "create pipelineruns", refuse: withoutRight("tekton.dev", "pipelineruns", "create"),
			words: []string{`User "USER" cannot create resource "pipelineruns" in API group "tekton.dev" in the namespace "NS"`, "grant this right", "config/", "Role"},
		},
		"the right to create secrets": {
			reason: fault.ReasonForbidden, call: "create secrets", refuse: withoutRight("", "secrets", "create"),
			words: []string{`User "USER" cannot create resource "secrets" in API group "" in the namespace "NS"`, "grant this right", "config/", "Role"},
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			onlyInTestAllUnless(t, name == "the right to create PipelineRuns")
			t.Parallel()
			w := newWorld(t, setup{receivers: 1})
			w.startController(true, "-operator-retry="+slowRetry.String())
			w.claimed()
			mend := u.refuse(w)
			sha, delivery := w.push(map[string]string{".tekton/run.yaml": pipeline("unready", "push")})
			w.deliver(delivery, http.StatusAccepted)
			w.asksAnAdministrator(sha, u)
			w.triedSlowly(u.call)
			w.neverFailed(sha)
			if runs := w.runs(); len(runs) != 0 {
				t.Errorf("%d PipelineRuns, want none", len(runs))
			}
			mend()
			w.checkReaches(sha, checkName("unready"), "success", afterFault)
			w.settles(sha, afterFault)
			w.credentialsAre("True", "", nil)
			w.neverFailed(sha)
			w.oneCheck(sha, checkName("unready"))
			w.invariants()
		})
	}
}

// asksAnAdministrator requires that the Repository and the check say what is missing.
func (w *world) asksAnAdministrator(sha string, u unready) {
	w.t.Helper()
	known := strings.NewReplacer("NS", w.ci, "USER", "system:serviceaccount:"+w.Namespace+":plumbline-controller")
	var words []string
	for _, word := range u.words {
		words = append(words, known.Replace(word))
	}
	w.credentialsAre("False", u.reason, words)
	check := w.checkReaches(sha, checkName("unready"), "queued", soon)
	if !containsAll(check.Text, append(words, u.reason)...) {
		w.t.Errorf("the check does not say what it waits for: %s", check.Text)
	}
}

// credentialsAre waits until the Repository's condition Credentials is so. Every installation in the cluster writes it,
// so it may say something else in between.
func (w *world) credentialsAre(status, reason string, words []string) {
	w.t.Helper()
	w.eventually(soon, "the Repository says so", func() error {
		repository, err := w.Plumbline.PipelinesascodeV1alpha1().Repositories(w.ci).Get(w.ctx, "app", metav1.GetOptions{})
		if err != nil {
			return err
		}
		c := repository.Status.GetCondition(pacv1alpha1.RepositoryCredentials)
		if c == nil || string(c.Status) != status || (reason != "" && c.Reason != reason) || !containsAll(c.Message, words...) {
			return fmt.Errorf("condition Credentials is %+v, want %s %s with %q", c, status, reason, words)
		}
		return nil
	})
}

// triedSlowly waits for three attempts and requires that they keep their distance. Waits end at whole seconds.
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

// withoutRight takes a right from the world's controllers, and gives it back.
func withoutRight(group, resource, verb string) func(*world) func() {
	return func(w *world) func() {
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
}

// may waits until the API server says whether the controller may do something in the Repository's namespace.
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
