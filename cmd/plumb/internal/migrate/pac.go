// SPDX-License-Identifier: Apache-2.0

// Package migrate moves a cluster from Pipelines-as-Code (PaC) to Plumbline, one namespace at a
// time, and back. Each verb can be killed at any point and called again.
package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
)

// The Deployments of PaC have the same names wherever it is installed. The Service has the name of
// the controller.
const (
	pacController = "pipelines-as-code-controller"
	pacWatcher    = "pipelines-as-code-watcher"
	pacWebhook    = "pipelines-as-code-webhook"
)

// PaC is the installation of Pipelines-as-Code in a cluster.
type PaC struct {
	// Namespace is where it is installed.
	Namespace string
	// Deployments are those of its controller, watcher and webhook that exist.
	Deployments []appsv1.Deployment
	// ConfigMap, Secret and Global are the names of its ConfigMap, of the Secret of its GitHub App
	// and of its global Repository.
	ConfigMap, Secret, Global string
}

// FindPaC returns the installation of Pipelines-as-Code, nil if there is none.
func FindPaC(ctx context.Context, c *kube.Cluster) (*PaC, error) {
	pac := &PaC{ConfigMap: "pipelines-as-code", Secret: "pipelines-as-code-secret", Global: "pipelines-as-code"}
	var namespaces []string
	for _, name := range []string{pacController, pacWatcher, pacWebhook} {
		// For RBAC the name in such a selector is the name of the resource.
		named := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()}
		list, err := c.Kube.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, named)
		if err != nil {
			return nil, kube.Failed("looking for Deployment "+name, err)
		}
		for _, d := range list.Items {
			if d.Name != name { // a fake API server ignores the selector
				continue
			}
			pac.Deployments = append(pac.Deployments, d)
			namespaces = append(namespaces, d.Namespace)
			if name == pacController {
				pac.read(d.Spec.Template.Spec.Containers)
			}
		}
	}
	slices.Sort(namespaces)
	switch namespaces = slices.Compact(namespaces); len(namespaces) {
	case 0:
		return nil, nil
	case 1:
		pac.Namespace = namespaces[0]
		return pac, nil
	}
	return nil, fmt.Errorf("several installations of Pipelines-as-Code, in the namespaces %s: "+
		"delete those of the installation that is not used", strings.Join(namespaces, ", "))
}

// read takes the names of PaC's objects from the environment of its controller.
func (p *PaC) read(containers []corev1.Container) {
	for _, container := range containers {
		for _, env := range container.Env {
			switch env.Name {
			case "PAC_CONTROLLER_CONFIGMAP":
				p.ConfigMap = cmp.Or(env.Value, p.ConfigMap)
			case "PAC_CONTROLLER_SECRET":
				p.Secret = cmp.Or(env.Value, p.Secret)
			case "PAC_CONTROLLER_GLOBAL_REPOSITORY":
				p.Global = cmp.Or(env.Value, p.Global)
			}
		}
	}
}

// Running returns the names of the Deployments that have replicas or should have some.
func (p *PaC) Running() (names []string) {
	if p == nil {
		return nil
	}
	for _, d := range p.Deployments {
		if d.Spec.Replicas == nil || *d.Spec.Replicas != 0 || d.Status.Replicas != 0 {
			names = append(names, d.Name)
		}
	}
	return names
}

// Operated reports whether the Tekton operator owns a Deployment, and so restores its replicas.
func (p *PaC) Operated() bool {
	return slices.ContainsFunc(p.Deployments, func(d appsv1.Deployment) bool {
		return slices.ContainsFunc(d.OwnerReferences, func(owner metav1.OwnerReference) bool {
			return owner.Kind == "TektonInstallerSet"
		})
	})
}

// HowToStop says how to stop PaC.
func (p *PaC) HowToStop() string {
	if p.Operated() {
		return "the Tekton operator owns it and would scale it up again: plumb migrate operator says how to stop it"
	}
	return fmt.Sprintf("kubectl -n %s scale deployment %s --replicas=0", p.Namespace, strings.Join(p.Running(), " "))
}

// errNoPaC is returned by verbs that need PaC.
var errNoPaC = errors.New("no Deployment " + pacController + " is in this cluster, so there is nothing to move from: " +
	"check the kubeconfig's context")

// Address returns the URL of PaC's controller in the cluster.
func (p *PaC) Address(ctx context.Context, c *kube.Cluster) (string, error) {
	what := fmt.Sprintf("reading Service %s/%s", p.Namespace, pacController)
	service, err := c.Kube.CoreV1().Services(p.Namespace).Get(ctx, pacController, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", fmt.Errorf("%s: it does not exist: say with --pac-url where the controller of Pipelines-as-Code listens",
			what)
	}
	if err != nil {
		return "", kube.Failed(what, err)
	}
	ports := slices.DeleteFunc(slices.Clone(service.Spec.Ports), func(port corev1.ServicePort) bool {
		return strings.Contains(port.Name, "metrics") || cmp.Or(port.Protocol, corev1.ProtocolTCP) != corev1.ProtocolTCP
	})
	if at := slices.IndexFunc(ports, func(port corev1.ServicePort) bool { return port.Name == "http-listener" }); at >= 0 {
		ports = ports[at : at+1]
	}
	if len(ports) != 1 {
		return "", fmt.Errorf(
			"%s: it has no port http-listener: say with --pac-url where the controller of Pipelines-as-Code listens", what,
		)
	}
	return fmt.Sprintf("http://%s.%s.svc.cluster.local:%d", pacController, p.Namespace, ports[0].Port), nil
}
