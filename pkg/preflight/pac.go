// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// leftOver is the webhook configuration of Pipelines-as-Code. It fails closed.
const leftOver = "validation.pipelinesascode.tekton.dev"

// pacNamespaces are where Pipelines-as-Code runs: its own manifests' and that of Red Hat's operator.
func pacNamespaces() []string { return []string{"pipelines-as-code", "openshift-pipelines"} }

// pacDeployments are what would do Plumbline's work a second time, and why that must not be.
func pacDeployments() map[string]string {
	return map[string]string{
		"pipelines-as-code-controller": "would start every pipeline a second time",
		"pipelines-as-code-watcher":    "would adopt Plumbline's PipelineRuns",
	}
}

// PipelinesAsCode looks for a Pipelines-as-Code in the cluster. One that runs is Fatal.
func (c *Checker) PipelinesAsCode(ctx context.Context) []Finding {
	found, err := c.RunningBeside(ctx)
	if err != nil {
		found = append(found, unknown("Pipelines-as-Code", err, "try again when the API server answers"))
	}
	if c.Coexist {
		return found
	}
	return append(found, c.leftOver(ctx)...)
}

// RunningBeside looks for Deployments of Pipelines-as-Code. An error means that the API server did not say whether there
// is one: ask again. A missing right is a finding that is not Fatal.
func (c *Checker) RunningBeside(ctx context.Context) ([]Finding, error) {
	if c.Coexist {
		return nil, nil
	}
	var all []Finding
	for _, namespace := range pacNamespaces() {
		for _, name := range []string{"pipelines-as-code-controller", "pipelines-as-code-watcher"} {
			object := fmt.Sprintf("Deployment %s/%s", namespace, name)
			deployment, err := c.kube.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
			case apierrors.IsForbidden(err):
				all = append(all, unknown(object, err, "let this account get it: kubectl apply -f config/210-clusterroles.yaml -f config/220-clusterrolebindings.yaml"))
			case err != nil:
				return all, fault.FromKube(fault.VerbRead, fmt.Errorf("looking for %s: %w", object, err))
			case deployment.Spec.Replicas == nil || *deployment.Spec.Replicas != 0:
				all = append(all, Finding{
					Fatal: true, Object: object, Problem: "runs in this cluster and " + pacDeployments()[name],
					Remedy: fmt.Sprintf("kubectl -n %s scale deployment %s --replicas=0, or start the controller with -coexist-with-pac", namespace, name),
				})
			}
		}
	}
	return all, nil
}

func (c *Checker) leftOver(ctx context.Context) []Finding {
	object := "ValidatingWebhookConfiguration " + leftOver
	_, err := c.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, leftOver, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return []Finding{unknown(object, err, "let this account get it: kubectl apply -f config/210-clusterroles.yaml -f config/220-clusterrolebindings.yaml")}
	}
	return []Finding{{
		Object: object, Problem: "is left over from Pipelines-as-Code: while its webhook is not served, no Repository can be created or changed",
		Remedy: "kubectl delete validatingwebhookconfiguration " + leftOver,
	}}
}
