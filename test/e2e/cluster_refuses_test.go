// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/test/cluster"
)

// C6: while the controller lacks a right, the check is queued and says so. The Repository's
// condition has the API server's message and says what to do. The creation is retried slowly, and
// the run starts once the right is granted.
func TestMissingRightWaitsForAdministrator(t *testing.T) {
	t.Parallel()
	env := newEnvironment(t, setup{receivers: 1})
	env.startController(true, "-operator-retry="+slowRetry.String())
	env.awaitClaimed()
	restore := env.revokeRight("tekton.dev", "pipelineruns", "create")
	sha := env.pushAccepted(map[string]string{".tekton/run.yaml": pipeline("unready", "push")})
	words := []string{
		fmt.Sprintf(`User "system:serviceaccount:%s:plumbline-controller" cannot create resource "pipelineruns" in API group "tekton.dev" in the namespace %q`, env.Namespace, env.ci),
		"grant this right", "config/", "Role",
	}
	env.awaitCredentialsCondition("False", fault.ReasonForbidden, words...)
	check := env.awaitCheck(sha, checkName("unready"), "queued", soon)
	if !containsAll(check.Text, append(words, fault.ReasonForbidden)...) {
		t.Errorf("the check does not say what it waits for: %s", check.Text)
	}
	env.requireSlowRetries("create pipelineruns")
	env.requireNoFailure(sha)
	env.requireRunCount(0)
	restore()
	env.awaitCheck(sha, checkName("unready"), "success", afterFault)
	env.awaitSettled(sha, afterFault)
	env.awaitCredentialsCondition("True", "NoProblem")
	env.requireNoFailure(sha)
	env.requireOneCheck(sha, checkName("unready"))
	env.requireInvariants()
}

// requireSlowRetries waits for three attempts and requires that they keep their distance. Waits
// end at whole seconds.
func (env *environment) requireSlowRetries(call string) {
	env.t.Helper()
	var attempts []cluster.Call
	env.eventually(soon, "it is tried again", func() error {
		attempts = slices.DeleteFunc(env.controller().Proxy.Calls(),
			func(c cluster.Call) bool { return nameOf(c) != call || c.Namespace != env.ci })
		if len(attempts) < 3 {
			return fmt.Errorf("%d attempts", len(attempts))
		}
		return nil
	})
	for i := range attempts[1:] {
		if after := attempts[i+1].Time.Sub(attempts[i].Time); after < slowRetry/2 {
			env.t.Errorf("attempt %d was made %v after the one before it, want %v", i+2, after, slowRetry)
		}
	}
}

// revokeRight takes a right from the environment's controllers, and returns a function that
// restores it.
func (env *environment) revokeRight(group, resource, verb string) (restore func()) {
	env.t.Helper()
	return env.revokeRightOf("plumbline-controller", group, resource, verb)
}

// revokeRightOf is revokeRight for one of the controllers' ClusterRoles.
func (env *environment) revokeRightOf(name, group, resource, verb string) (restore func()) {
	env.t.Helper()
	roles := env.Kube.RbacV1().ClusterRoles()
	role, err := roles.Get(env.ctx, name+"-"+env.Namespace, metav1.GetOptions{})
	env.must(err)
	whole := role.DeepCopy()
	for i, rule := range role.Rules {
		if slices.Contains(rule.APIGroups, group) && slices.Contains(rule.Resources, resource) {
			role.Rules[i].Verbs = slices.DeleteFunc(rule.Verbs, func(v string) bool { return v == verb })
		}
	}
	role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return len(rule.Verbs) == 0 })
	env.must(errOf(roles.Update(env.ctx, role, metav1.UpdateOptions{})))
	env.awaitRight(group, resource, verb, false)
	return func() {
		whole.ResourceVersion = ""
		env.must(errOf(roles.Update(env.ctx, whole, metav1.UpdateOptions{})))
		env.awaitRight(group, resource, verb, true)
	}
}

// awaitRight waits until the API server says whether the controller has a right in the
// Repository's namespace.
func (env *environment) awaitRight(group, resource, verb string, want bool) {
	env.t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:" + env.Namespace + ":plumbline-controller",
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: env.ci, Group: group, Resource: resource, Verb: verb,
		},
	}}
	env.eventually(soon, "the API server has read the role", func() error {
		answer, err := env.Kube.AuthorizationV1().SubjectAccessReviews().Create(env.ctx, review, metav1.CreateOptions{})
		if err == nil && answer.Status.Allowed != want {
			err = fmt.Errorf("it says %+v", answer.Status)
		}
		return err
	})
}
