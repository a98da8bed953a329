// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
)

// guardName is the policy that refuses to delete the definition of Repositories, and its binding.
const guardName = "plumbline-keep-repositories"

// refusals is how often the API server has to refuse in sequence: a cluster may have several API
// servers, each of which learns of a policy by a watch.
const refusals = 5

func guardPolicy() (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	meta := metav1.ObjectMeta{Name: guardName, Labels: map[string]string{"app.kubernetes.io/part-of": "plumbline"}}
	fail := admissionv1.Fail
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Delete},
					Rule: admissionv1.Rule{
						APIGroups: []string{definitions().Group}, APIVersions: []string{"*"}, Resources: []string{definitions().Resource},
					},
				}}},
			},
			Validations: []admissionv1.Validation{{
				Expression: fmt.Sprintf("oldObject.metadata.name != '%s'", definitionName),
				Message:    "plumb migrate operator keeps the Repositories until it has finished",
			}},
		},
	}
	return policy, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: guardName, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
}

// guarded reports whether the policy exists.
func (o *Operator) guarded(ctx context.Context) (bool, error) {
	_, err := o.Cluster.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().
		Get(ctx, guardName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, kube.Failed("reading ValidatingAdmissionPolicy "+guardName, err)
	}
	return true, nil
}

// guard creates the policy, and returns when the API server refuses to delete the definition.
func (o *Operator) guard(ctx context.Context, s *operated) error {
	policy, binding := guardPolicy()
	admission := o.Cluster.Kube.AdmissionregistrationV1()
	if _, err := admission.ValidatingAdmissionPolicies().
		Create(ctx, policy, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return kube.Failed("creating ValidatingAdmissionPolicy "+guardName, err)
	}
	if _, err := admission.ValidatingAdmissionPolicyBindings().
		Create(ctx, binding, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return kube.Failed("creating ValidatingAdmissionPolicyBinding "+guardName, err)
	}
	uid, refused := s.definition.GetUID(), 0
	err := o.until(ctx, func(ctx context.Context) (bool, error) {
		err := o.Cluster.Dynamic.Resource(definitions()).Delete(ctx, definitionName, metav1.DeleteOptions{
			DryRun: []string{metav1.DryRunAll}, Preconditions: &metav1.Preconditions{UID: &uid},
		})
		switch {
		case err == nil:
			refused = 0
			return false, nil
		// Only the text of a denial names the policy: its code and reason are those of every
		// policy.
		case !strings.Contains(err.Error(), guardName):
			return false, kube.Failed("deleting CustomResourceDefinition "+definitionName+" in a dry run", err)
		}
		refused++
		return refused == refusals, nil
	})
	if err != nil {
		return fmt.Errorf("the API server does not enforce ValidatingAdmissionPolicy %s: %w", guardName, err)
	}
	o.say("The API server refuses to delete CustomResourceDefinition %s", definitionName)
	return o.still(ctx, s)
}

// unguard deletes the policy.
func (o *Operator) unguard(ctx context.Context) error {
	admission := o.Cluster.Kube.AdmissionregistrationV1()
	if err := admission.ValidatingAdmissionPolicyBindings().
		Delete(ctx, guardName, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return kube.Failed("deleting ValidatingAdmissionPolicyBinding "+guardName, err)
	}
	if err := admission.ValidatingAdmissionPolicies().
		Delete(ctx, guardName, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return kube.Failed("deleting ValidatingAdmissionPolicy "+guardName, err)
	}
	return nil
}
