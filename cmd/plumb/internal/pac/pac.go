// SPDX-License-Identifier: Apache-2.0

// Package pac finds Pipelines-as-Code (PaC) in a cluster.
package pac

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
)

// The Deployments of PaC have the same names wherever it is installed. The Service has the name of
// the controller.
const (
	ControllerName = "pipelines-as-code-controller"
	WatcherName    = "pipelines-as-code-watcher"
	WebhookName    = "pipelines-as-code-webhook"
)

// The default names of PaC's ConfigMap and global Repository, and of its Secret.
const (
	defaultName   = "pipelines-as-code"
	defaultSecret = "pipelines-as-code-secret" // #nosec G101 -- a name
)

// Controller is one controller of PaC. An additional controller has another name, and its own
// ConfigMap and GitHub App.
type Controller struct {
	Namespace  string `json:"namespace"`
	Deployment string `json:"deployment"`
	Version    string `json:"version,omitempty"`
	ConfigMap  string `json:"configMap"`
	Secret     string `json:"secret"`
	// Operator is true if the Tekton operator installed it.
	Operator bool `json:"operator,omitempty"`
	// Global is the name of the global Repository.
	Global string `json:"-"`
	// Network are the variables of its environment without which it may reach no Git service.
	Network []string `json:"-"`
}

// ControllerOf returns the controller that a Deployment is.
func ControllerOf(d *appsv1.Deployment) (Controller, bool) {
	env, network := map[string]string{}, []string(nil)
	for _, container := range d.Spec.Template.Spec.Containers {
		for _, variable := range container.Env {
			env[variable.Name] = variable.Value
			if isNetwork(variable.Name) && variable.Value != "" && !slices.Contains(network, variable.Name) {
				network = append(network, variable.Name)
			}
		}
	}
	labelled := d.Labels["app.kubernetes.io/part-of"] == "pipelines-as-code" &&
		d.Spec.Template.Labels["app.kubernetes.io/component"] == "controller"
	if d.Name != ControllerName && env["PAC_CONTROLLER_CONFIGMAP"] == "" && !labelled {
		return Controller{}, false
	}
	return Controller{
		Namespace: d.Namespace, Deployment: d.Name, Version: d.Labels["app.kubernetes.io/version"],
		ConfigMap: cmp.Or(env["PAC_CONTROLLER_CONFIGMAP"], defaultName),
		Secret:    cmp.Or(env["PAC_CONTROLLER_SECRET"], defaultSecret),
		Global:    cmp.Or(env["PAC_CONTROLLER_GLOBAL_REPOSITORY"], defaultName),
		Operator:  operated(d),
		Network:   network,
	}, true
}

func isNetwork(variable string) bool {
	return slices.Contains(
		[]string{"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"}, strings.ToUpper(variable))
}

// operated reports whether the Tekton operator owns a Deployment, and so restores its replicas.
func operated(d *appsv1.Deployment) bool {
	return slices.ContainsFunc(d.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return owner.Kind == "TektonInstallerSet"
	})
}

// Installation is PaC in one namespace.
type Installation struct {
	// Controller is the one that is called ControllerName. If its Deployment does not exist, it has
	// the default names.
	Controller
	// Additional are the other controllers.
	Additional []Controller
	// Deployments are those of the controllers, the watcher and the webhook that exist.
	Deployments []appsv1.Deployment
}

// Deployments lists the Deployments of a namespace, "" for all.
func Deployments(ctx context.Context, c kubernetes.Interface, namespace string) (all []appsv1.Deployment, err error) {
	err = kube.Pages(metav1.ListOptions{}, func(o metav1.ListOptions) (string, error) {
		list, err := c.AppsV1().Deployments(namespace).List(ctx, o)
		if err != nil {
			return "", err
		}
		all = append(all, list.Items...)
		return list.Continue, nil
	})
	return all, err
}

// Find returns the installation of PaC in a cluster, nil if there is none.
func Find(ctx context.Context, c kubernetes.Interface) (*Installation, error) {
	all, err := Deployments(ctx, c, metav1.NamespaceAll)
	if err != nil {
		return nil, kube.Failed("listing the Deployments, to find Pipelines-as-Code", err)
	}
	pac := &Installation{Controller: Controller{ConfigMap: defaultName, Secret: defaultSecret, Global: defaultName}}
	var namespaces []string
	for i := range all {
		controller, is := ControllerOf(&all[i])
		switch {
		case is && all[i].Name == ControllerName:
			pac.Controller = controller
		case is:
			pac.Additional = append(pac.Additional, controller)
		case all[i].Name != WatcherName && all[i].Name != WebhookName:
			continue
		}
		pac.Deployments = append(pac.Deployments, all[i])
		namespaces = append(namespaces, all[i].Namespace)
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

// Running returns the names of the Deployments that have replicas or should have some.
func (p *Installation) Running() (names []string) {
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

// Stopped returns the name of a Deployment without which PaC serves no namespace and that does not
// run, "" if PaC runs.
func (p *Installation) Stopped() string {
	running := p.Running()
	for _, name := range []string{ControllerName, WatcherName} {
		if !slices.Contains(running, name) {
			return name
		}
	}
	return ""
}

// Operated reports whether the Tekton operator owns a Deployment, and so restores its replicas.
func (p *Installation) Operated() bool {
	return slices.ContainsFunc(p.Deployments, func(d appsv1.Deployment) bool { return operated(&d) })
}

// HowToStop says how to stop PaC.
func (p *Installation) HowToStop() string {
	if p.Operated() {
		return "the Tekton operator owns it and would scale it up again: plumb migrate operator says how to stop it"
	}
	return fmt.Sprintf("kubectl -n %s scale deployment %s --replicas=0", p.Namespace, strings.Join(p.Running(), " "))
}

// Address returns the URL of PaC's controller in the cluster.
func (p *Installation) Address(ctx context.Context, c kubernetes.Interface) (string, error) {
	what := fmt.Sprintf("reading Service %s/%s", p.Namespace, ControllerName)
	const remedy = "say with --pac-url where the controller of Pipelines-as-Code listens"
	service, err := c.CoreV1().Services(p.Namespace).Get(ctx, ControllerName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", fmt.Errorf("%s: it does not exist: %s", what, remedy)
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
		return "", fmt.Errorf("%s: it has no port http-listener: %s", what, remedy)
	}
	return fmt.Sprintf("http://%s.%s.svc.cluster.local:%d", ControllerName, p.Namespace, ports[0].Port), nil
}
