// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// leftOver is the webhook configuration of Pipelines-as-Code. It fails closed.
const leftOver = "validation.pipelinesascode.tekton.dev"

// pacDeployment is a Deployment of Pipelines-as-Code, and what it would do next to Plumbline.
type pacDeployment struct{ name, would string }

// pacDeployments have the same names wherever they are installed. PaC's own manifests use the
// namespace pipelines-as-code, the Tekton operator openshift-pipelines or tekton-pipelines, and
// both can use another one.
func pacDeployments() []pacDeployment {
	return []pacDeployment{
		{name: "pipelines-as-code-controller", would: "would start every pipeline a second time"},
		{name: "pipelines-as-code-watcher", would: "would adopt Plumbline's PipelineRuns"},
	}
}

// operatorKind owns every object that the Tekton operator installs.
const operatorKind = "TektonInstallerSet"

// pipelinesAsCode finds Pipelines-as-Code in the cluster. A running one is Fatal, unless it runs on
// purpose.
func (c *Checker) pipelinesAsCode(ctx context.Context) []Finding {
	if c.Coexist {
		c.onPurpose = "-coexist-with-pac"
		return nil
	}
	found, err := c.deployedPaC(ctx)
	if err != nil {
		return append(found, unknown("Pipelines-as-Code", err, tryAgain))
	}
	settings, err := c.settings(ctx)
	if err != nil {
		found = append(found, c.unread(ctx, c.pipelinesAsCodeURL(), err, "get the ConfigMap", roles))
		return append(found, c.leftOver(ctx)...)
	}
	if settings.PipelinesAsCode.Runs() {
		return c.beside(settings, found)
	}
	return append(found, c.leftOver(ctx)...)
}

func (c *Checker) pipelinesAsCodeURL() string {
	return fmt.Sprintf("pipelines-as-code-url in ConfigMap %s/%s", c.Namespace, c.configMap())
}

// beside returns the problems of a Pipelines-as-Code that is to serve other namespaces. Found are
// its Deployments.
func (c *Checker) beside(settings *config.Config, found []Finding) []Finding {
	problems := slices.DeleteFunc(slices.Clone(found), Finding.running)
	add := func(problem, remedy string) {
		problems = append(problems, Finding{Object: c.pipelinesAsCodeURL(), Problem: problem, Remedy: remedy})
	}
	switch {
	case settings.PipelinesAsCode.Broken:
		add(
			"cannot be read, so that a process that starts now answers 503 for the namespaces of Pipelines-as-Code",
			"write scheme, host and port, for example http://pipelines-as-code-controller.pipelines-as-code.svc.cluster.local:8080",
		)
	case len(found) == 0:
		add("is set, and Pipelines-as-Code does not run in this cluster: deliveries for its namespaces are answered 503",
			"start it again; if all namespaces have moved: plumb migrate finish")
	case slices.ContainsFunc(found, Finding.running) && settings.Namespaces.All():
		add("is set, and nothing is left for Pipelines-as-Code: serve-namespaces is empty, which is every namespace",
			"plumb migrate finish; or list the namespaces that have moved in serve-namespaces")
	default:
		c.onPurpose = "pipelines-as-code-url"
	}
	return problems
}

// running reports whether a finding is a Deployment of Pipelines-as-Code that runs.
func (f Finding) running() bool { return f.Fatal }

// RunningPaC finds Deployments of Pipelines-as-Code in all namespaces, unless it runs on purpose.
// An error means that the API server did not respond: call it again. A missing right is a finding
// that is not Fatal.
func (c *Checker) RunningPaC(ctx context.Context) ([]Finding, error) {
	if c.Coexist {
		return nil, nil
	}
	found, err := c.deployedPaC(ctx)
	if err != nil || !slices.ContainsFunc(found, Finding.running) {
		return found, err
	}
	settings, err := c.settings(ctx)
	if err != nil {
		return found, fault.FromKube(fault.VerbRead, fmt.Errorf("reading %s: %w", c.pipelinesAsCodeURL(), err))
	}
	if settings.PipelinesAsCode.Runs() {
		return nil, nil
	}
	return found, nil
}

func (c *Checker) deployedPaC(ctx context.Context) ([]Finding, error) {
	var all []Finding
	for _, pac := range pacDeployments() {
		// For RBAC the name in such a selector is the name of the resource, so a right on two names
		// is enough.
		named := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, pac.name).String()}
		list, err := c.kube.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, named)
		switch {
		case apierrors.IsForbidden(err):
			all = append(all, c.unread(ctx, "Deployment "+pac.name, err, "list it", clusterRoles))
			continue
		case err != nil:
			return all, fault.FromKube(fault.VerbRead, fmt.Errorf("looking for Deployment %s: %w", pac.name, err))
		}
		for _, deployment := range list.Items {
			if deployment.Spec.Replicas == nil || *deployment.Spec.Replicas != 0 {
				all = append(all, Finding{
					Fatal: true, Object: fmt.Sprintf("Deployment %s/%s", deployment.Namespace, pac.name),
					Problem: "runs in this cluster and " + pac.would, Remedy: stopping(deployment),
				})
			}
		}
	}
	return all, nil
}

// stopping says how to stop a Deployment of Pipelines-as-Code.
func stopping(d appsv1.Deployment) string {
	const read, override = "read docs/migration.md", "or run both with plumb migrate start"
	operated := func(owner metav1.OwnerReference) bool { return owner.Kind == operatorKind }
	if slices.ContainsFunc(d.OwnerReferences, operated) {
		return "the Tekton operator scales it up again whatever is done to it: " + read + ", " + override
	}
	return fmt.Sprintf("%s, then kubectl -n %s scale deployment %s --replicas=0, %s", read, d.Namespace, d.Name, override)
}

func (c *Checker) leftOver(ctx context.Context) []Finding {
	object := "ValidatingWebhookConfiguration " + leftOver
	_, err := c.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, leftOver, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return []Finding{c.unread(ctx, object, err, "get it", clusterRoles)}
	}
	return []Finding{
		{
			Object:  object,
			Problem: "is left over from Pipelines-as-Code: while its webhook is not served, no Repository can be created or changed",
			Remedy:  "kubectl delete validatingwebhookconfiguration " + leftOver,
		},
	}
}
