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
	condition  string // keeps it to one world
	expression string
	message    string
}

// byController is the condition that a world's controllers ask.
func (w *world) byController() string {
	return fmt.Sprintf("request.userInfo.username == %q", "system:serviceaccount:"+w.Namespace+":plumbline-controller")
}

// denial is what the API server says when the policy denies.
func (w *world) denial(p policy) string {
	return fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", w.policyName(), w.policyName(), p.message)
}

// policyName is the world's own: policies are cluster-wide.
func (w *world) policyName() string { return w.Namespace + ".test.plumbline.dev" }

// enforce creates the policy and waits until the probe is denied by it. It ends with the returned
// function, which waits until the probe passes, or with the test.
func (w *world) enforce(p policy, probe func() error) (lift func()) {
	w.t.Helper()
	fail := admissionv1.Fail
	policies := w.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	bindings := w.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	_, err := policies.Create(w.ctx, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: w.policyName()},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{p.operation},
					Rule:       admissionv1.Rule{APIGroups: []string{"tekton.dev"}, APIVersions: []string{"*"}, Resources: []string{cmp.Or(p.resource, "pipelineruns")}},
				},
			}}},
			MatchConditions: []admissionv1.MatchCondition{{Name: "ours", Expression: p.condition}},
			Validations:     []admissionv1.Validation{{Expression: p.expression, Message: p.message}},
		},
	}, metav1.CreateOptions{})
	w.must(err)
	_, err = bindings.Create(w.ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.policyName()},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: w.policyName(), ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}, metav1.CreateOptions{})
	w.must(err)
	remove := func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = bindings.Delete(ctx, w.policyName(), metav1.DeleteOptions{})
		_ = policies.Delete(ctx, w.policyName(), metav1.DeleteOptions{})
	}
	w.t.Cleanup(remove)
	w.eventually(soon, "the policy is enforced", func() error {
		if err := probe(); err == nil || !strings.Contains(err.Error(), w.policyName()) {
			return fmt.Errorf("the probe says: %w", err)
		}
		return nil
	})
	return func() {
		w.t.Helper()
		remove()
		w.eventually(soon, "the policy is lifted", probe)
	}
}

// asController is a client with the controller's own rights.
func (w *world) asController() tektonclient.Interface {
	w.t.Helper()
	token, err := w.Cluster.Token(w.ctx, w.Namespace, "plumbline-controller")
	w.must(err)
	config := rest.AnonymousClientConfig(w.Cluster.RESTConfig())
	config.BearerToken = token
	client, err := tektonclient.NewForConfig(config)
	w.must(err)
	return client
}

// sample is a PipelineRun that Tekton accepts and does not start.
func sample(name string) *pipelinev1.PipelineRun {
	return &pipelinev1.PipelineRun{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: pipelinev1.PipelineRunSpec{
			Status: pipelinev1.PipelineRunSpecStatusPending,
			PipelineSpec: &pipelinev1.PipelineSpec{Tasks: []pipelinev1.PipelineTask{{
				Name: "build", TaskSpec: &pipelinev1.EmbeddedTask{TaskSpec: pipelinev1.TaskSpec{Steps: []pipelinev1.Step{{Name: "step", Image: "busybox"}}}},
			}}},
		},
	}
}

// probeCreate creates a PipelineRun of that name in a namespace of its own, with the controller's
// rights, as a dry run.
func (w *world) probeCreate(name string) func() error {
	w.t.Helper()
	client, namespace := w.asController(), shared.cluster.Namespace(w.t, "probe")
	return func() error {
		created, err := client.TektonV1().PipelineRuns(namespace).Create(w.ctx, sample(name), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && created.Name != name {
			return errors.New("another object was created")
		}
		return err
	}
}
