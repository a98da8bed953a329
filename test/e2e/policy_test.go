// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	tektonclient "github.com/tektoncd/pipeline/pkg/client/clientset/versioned"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// policy is a ValidatingAdmissionPolicy on PipelineRuns.
type policy struct {
	operation  admissionv1.OperationType
	resource   string // "" is pipelineruns
	condition  string // keeps it to one environment
	expression string
	message    string
}

// controllerCondition is the policy's condition for requests of the environment's controllers.
func (env *environment) controllerCondition() string {
	return fmt.Sprintf("request.userInfo.username == %q", "system:serviceaccount:"+env.Namespace+":plumbline-controller")
}

// policyDenial is the API server's message when the policy denies.
func (env *environment) policyDenial(p policy) string {
	return fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", env.policyName(),
		env.policyName(), p.message)
}

// policyName returns the environment's own name: policies are cluster-wide.
func (env *environment) policyName() string { return env.Namespace + ".test.plumbline.dev" }

// enforcePolicy creates the policy and waits until it denies the probe. The policy is deleted at
// the end of the test, or by lift, which waits until the probe passes.
func (env *environment) enforcePolicy(p policy, probe func() error) (lift func()) {
	env.t.Helper()
	fail := admissionv1.Fail
	policies := env.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	bindings := env.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	_, err := policies.Create(env.ctx, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: env.policyName()},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{p.operation},
					Rule: admissionv1.Rule{APIGroups: []string{"tekton.dev"}, APIVersions: []string{"*"},
						Resources: []string{cmp.Or(p.resource, "pipelineruns")}},
				},
			}}},
			MatchConditions: []admissionv1.MatchCondition{{Name: "ours", Expression: p.condition}},
			Validations:     []admissionv1.Validation{{Expression: p.expression, Message: p.message}},
		},
	}, metav1.CreateOptions{})
	env.must(err)
	_, err = bindings.Create(env.ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: env.policyName()},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: env.policyName(), ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}, metav1.CreateOptions{})
	env.must(err)
	remove := func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = bindings.Delete(ctx, env.policyName(), metav1.DeleteOptions{})
		_ = policies.Delete(ctx, env.policyName(), metav1.DeleteOptions{})
	}
	env.t.Cleanup(remove)
	env.eventually(soon, "the policy is enforced", func() error {
		if err := probe(); err == nil || !strings.Contains(err.Error(), env.policyName()) {
			return fmt.Errorf("the probe says: %w", err)
		}
		return nil
	})
	return func() {
		env.t.Helper()
		remove()
		env.eventually(soon, "the policy is lifted", probe)
	}
}

// asController returns a client with the controller's own rights.
func (env *environment) asController() tektonclient.Interface {
	env.t.Helper()
	token, err := env.Cluster.Token(env.ctx, env.Namespace, "plumbline-controller")
	env.must(err)
	config := rest.AnonymousClientConfig(env.Cluster.RESTConfig())
	config.BearerToken = token
	client, err := tektonclient.NewForConfig(config)
	env.must(err)
	return client
}

// sample returns a PipelineRun that Tekton accepts and does not start.
func sample(name string) *pipelinev1.PipelineRun {
	return &pipelinev1.PipelineRun{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: pipelinev1.PipelineRunSpec{
			Status: pipelinev1.PipelineRunSpecStatusPending,
			PipelineSpec: &pipelinev1.PipelineSpec{Tasks: []pipelinev1.PipelineTask{{
				Name: "build", TaskSpec: &pipelinev1.EmbeddedTask{
					TaskSpec: pipelinev1.TaskSpec{Steps: []pipelinev1.Step{{Name: "step", Image: "busybox"}}},
				},
			}}},
		},
	}
}

// probeCreate returns a function that creates a PipelineRun with the controller's rights in its
// own namespace, as a dry run.
func (env *environment) probeCreate(name string) func() error {
	env.t.Helper()
	client, namespace := env.asController(), shared.cluster.Namespace(env.t, "probe")
	return func() error {
		created, err := client.TektonV1().PipelineRuns(namespace).Create(env.ctx, sample(name),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && created.Name != name {
			return errors.New("another object was created")
		}
		return err
	}
}
