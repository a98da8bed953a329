// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Check is one thing that plumb doctor checks.
type Check struct {
	Name string
	Run  func(context.Context) []Finding
}

// First returns the check without whose answer no other check can be made: see Unanswered.
func (c *Checker) First() Check { return Check{"Kubernetes", c.kubernetes} }

// Installation returns the checks of a whole installation, made with the rights of a person. The
// rights of each component are those of its ServiceAccount. Without an App its Secret is not
// checked.
func (c *Checker) Installation(app bool) []Check {
	controller, receiver := c.as(Controller), c.as(Receiver)
	all := []Check{{"Tekton Pipelines", c.tekton}}
	for _, want := range c.want.definitions {
		all = append(all, Check{
			"CustomResourceDefinition " + want.Spec.Names.Plural,
			func(ctx context.Context) []Finding { return c.definition(ctx, want) },
		})
	}
	all = append(all,
		Check{"Deployments", c.deployments},
		Check{"Rights of the controller", controller.rights},
		Check{"Rights of the receiver", receiver.rights},
		Check{"Excessive rights of the receiver", receiver.excess},
	)
	if app {
		all = append(all, Check{"Secret of the GitHub App", c.secret})
	}
	return append(all,
		Check{"Copies of webhook secrets", c.copies},
		Check{"Services", c.services},
		Check{"Git services of Repositories", c.repositoriesOfTeams},
		Check{"Links to a console", c.dashboard},
		Check{"Keys of the ConfigMap", c.ignoredKeys},
		Check{"Pipelines-as-Code", c.pipelinesAsCode},
	)
}

// Prerequisites returns the checks of what a cluster needs before Plumbline is installed.
func (c *Checker) Prerequisites() []Check {
	return []Check{
		{"Tekton Pipelines", c.tekton},
		{"Rights to install", c.installable},
		{"Pipelines-as-Code", c.pipelinesAsCode},
	}
}

// Versions returns the checks of the versions of Kubernetes and Tekton.
func (c *Checker) Versions() []Check { return []Check{c.First(), {"Tekton Pipelines", c.tekton}} }

// as returns a Checker that checks the rights of a component's ServiceAccount.
func (c *Checker) as(component Component) *Checker {
	other := *c
	other.Component = component
	other.account = fmt.Sprintf("system:serviceaccount:%s:%s", c.Namespace, component)
	return &other
}

// deployments checks whether both components run.
func (c *Checker) deployments(ctx context.Context) []Finding {
	var all []Finding
	for _, component := range []Component{Controller, Receiver} {
		object := fmt.Sprintf("Deployment %s/%s", c.Namespace, component)
		deployment, err := c.kube.AppsV1().Deployments(c.Namespace).Get(ctx, string(component), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			all = append(all, Finding{
				Object: object, Problem: "does not exist",
				Remedy: "install Plumbline (" + c.apply(ctx, "config/") + "), or say with --system-namespace where it is installed",
			})
		case err != nil:
			all = append(all, unknown(object, err, tryAgain))
		case deployment.Status.AvailableReplicas == 0:
			all = append(all, Finding{
				Object: object, Problem: "has no available pod",
				Remedy: fmt.Sprintf("kubectl -n %s describe deployment,pod -l %s=%s, then kubectl -n %s logs deployment/%s",
					c.Namespace, nameLabel, component, c.Namespace, component),
			})
		}
	}
	return all
}

// installable checks whether this account may create the objects of an installation that no
// namespace's owner may create.
func (c *Checker) installable(ctx context.Context) []Finding {
	const rbac = "rbac.authorization.k8s.io"
	var all []Finding
	for _, what := range []authorizationv1.ResourceAttributes{
		{Resource: "namespaces"},
		{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
		{Group: rbac, Resource: "clusterroles"},
		{Group: rbac, Resource: "clusterrolebindings"},
		{Group: "apps", Resource: "deployments", Namespace: c.Namespace},
	} {
		what.Verb = "create"
		resource := qualified(what.Group, what.Resource)
		allowed, err := c.allowed(ctx, what)
		switch {
		case err != nil:
			return []Finding{unknown("Rights to install", err, tryAgain)}
		case !allowed:
			all = append(all, Finding{
				Object: "This account", Problem: "may not create " + resource,
				Remedy: "install with an account that has ClusterRole cluster-admin",
			})
		}
	}
	return all
}
