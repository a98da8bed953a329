// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
)

// The names of Pipelines-as-Code's own objects, and where its manifests and the Tekton operator
// install it.
const (
	controller     = "pipelines-as-code-controller"
	partOf         = "app.kubernetes.io/part-of"
	pacName        = "pipelines-as-code"
	defaultSecret  = "pipelines-as-code-secret" // #nosec G101 -- a name
	webhookKey     = "webhook.secret"
	versionLabel   = "app.kubernetes.io/version"
	operatorKind   = "TektonInstallerSet"
	pageOfOperator = "docs/migration.md#three-traps"
	pageOfSettings = "docs/migration.md#settings-that-do-nothing"
)

func usualNamespaces() []string {
	return []string{pacName, "openshift-pipelines", "tekton-pipelines"}
}

// errNoPaC is returned for a cluster without Pipelines-as-Code.
var errNoPaC = errors.New("no controller of Pipelines-as-Code was found: there is no Deployment called " + controller +
	", and none that sets PAC_CONTROLLER_CONFIGMAP. If it is stopped, its Deployment must still exist. " +
	"--pac-namespace names its namespace if this account may not list Deployments")

// installations finds the controllers of Pipelines-as-Code.
func (s *surveyor) installations(ctx context.Context) ([]Installation, error) {
	missing := len(s.rights)
	deployments, err := s.deployments(ctx)
	if err != nil {
		return nil, err
	}
	var usual, additional []Installation
	for i := range deployments {
		one, is := controllerOf(&deployments[i])
		switch {
		case is && one.Deployment == controller:
			usual = append(usual, one)
		case is:
			additional = append(additional, one)
		}
	}
	found := append(usual, additional...)
	if len(found) == 0 && len(s.rights) == missing {
		return nil, errNoPaC
	}
	return found, nil
}

// deployments lists those of all namespaces. An account that may not do that reads the usual ones.
func (s *surveyor) deployments(ctx context.Context) ([]appsv1.Deployment, error) {
	namespaces := []string{metav1.NamespaceAll}
	if s.Namespace != "" {
		namespaces = []string{s.Namespace}
	}
	all, err := s.listDeployments(ctx, namespaces)
	if !apierrors.IsForbidden(err) || s.Namespace != "" {
		return all, s.unlessForbidden("reading Deployments", err)
	}
	for _, namespace := range usualNamespaces() {
		one, err := s.cluster.Kube.AppsV1().Deployments(namespace).Get(ctx, controller, metav1.GetOptions{})
		if err == nil {
			all = append(all, *one)
		} else if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("reading Deployment %s/%s: %w", namespace, controller, err)
		}
	}
	if len(all) == 0 {
		s.note(err)
	}
	return all, nil
}

func (s *surveyor) listDeployments(ctx context.Context, namespaces []string) ([]appsv1.Deployment, error) {
	var all []appsv1.Deployment
	for _, namespace := range namespaces {
		err := pages(func(o metav1.ListOptions) (string, error) {
			list, err := s.cluster.Kube.AppsV1().Deployments(namespace).List(ctx, o)
			if err != nil {
				return "", err
			}
			all = append(all, list.Items...)
			return list.Continue, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// controllerOf returns the installation whose controller a Deployment is. An additional controller
// has another name and its own ConfigMap and Secret.
func controllerOf(d *appsv1.Deployment) (Installation, bool) {
	env := map[string]string{}
	for _, container := range d.Spec.Template.Spec.Containers {
		for _, variable := range container.Env {
			env[variable.Name] = variable.Value
		}
	}
	labelled := d.Labels[partOf] == pacName && d.Spec.Template.Labels["app.kubernetes.io/component"] == "controller"
	if d.Name != controller && env["PAC_CONTROLLER_CONFIGMAP"] == "" && !labelled {
		return Installation{}, false
	}
	return Installation{
		Namespace: d.Namespace, Deployment: d.Name, Version: d.Labels[versionLabel],
		ConfigMap: cmp.Or(env["PAC_CONTROLLER_CONFIGMAP"], pacName),
		Secret:    cmp.Or(env["PAC_CONTROLLER_SECRET"], defaultSecret),
		global:    cmp.Or(env["PAC_CONTROLLER_GLOBAL_REPOSITORY"], pacName),
		Operator: slices.ContainsFunc(d.OwnerReferences, func(o metav1.OwnerReference) bool {
			return o.Kind == operatorKind
		}),
	}, true
}

// name is how a report names an installation.
func (i Installation) name() string { return i.Namespace + "/" + i.Deployment }

// examine reports what an installation says for all Repositories, and returns the settings that
// Plumbline has with its keys. own are the keys of Plumbline's ConfigMap.
func (s *surveyor) examine(ctx context.Context, i Installation, own map[string]string) (*config.Config, error) {
	if i.Operator {
		s.add(Finding{
			Kind: Differs, Topic: Cluster, Page: pageOfOperator,
			Says:   "the Tekton operator installed this controller, and restores what is changed or deleted",
			Remedy: "follow the steps for the operator",
		}, "", i.name())
	}
	data, err := s.configMap(ctx, i.Namespace, i.ConfigMap)
	return s.settings(i, data, own), err
}

// configMap returns the keys of a ConfigMap, none if it does not exist.
func (s *surveyor) configMap(ctx context.Context, namespace, name string) (map[string]string, error) {
	configMap, err := s.cluster.Kube.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil:
		return configMap.Data, nil
	case apierrors.IsNotFound(err):
		return nil, nil
	}
	return nil, s.unlessForbidden("reading ConfigMap "+namespace+"/"+name, err)
}

// settings reports on each key of a ConfigMap.
func (s *surveyor) settings(i Installation, data, own map[string]string) *config.Config {
	object := "ConfigMap " + i.Namespace + "/" + i.ConfigMap
	report := func(kind Kind, says, remedy, key string) {
		s.add(Finding{
			Kind: kind, Topic: Setting, Says: object + ": " + says, Remedy: remedy, Page: pageOfSettings,
		}, "", key)
	}
	copied := map[string]string{}
	ignored := config.Ignored(data)
	for _, name := range slices.Sorted(maps.Keys(data)) {
		key, known := config.PaCKey(name)
		switch {
		case strings.HasPrefix(name, "_"), strings.TrimSpace(data[name]) == "":
		case !known:
			report(Differs, "neither product reads the key", "correct its name, or remove it", name)
		case key.Treatment == pacv1alpha1.Served:
			copied[name] = data[name]
		case key.Treatment == pacv1alpha1.Differs,
			slices.ContainsFunc(ignored, func(other pacv1alpha1.Setting) bool { return other.Name == name }):
			report(Differs, "the key has no effect: "+key.Instead, "", name)
		}
	}
	_, err := config.New(copied)
	bad := badKeys(err)
	for _, name := range slices.Sorted(maps.Keys(copied)) {
		if strings.TrimSpace(own[name]) != "" {
			continue
		}
		if bad[name] != "" {
			report(Differs, "Plumbline uses the default: "+bad[name], "set another value in ConfigMap plumbline", name)
			continue
		}
		report(
			Same,
			"the keys have the same names and meanings",
			"copy their values to ConfigMap plumbline, as plumb migrate start does",
			name,
		)
	}
	maps.Copy(copied, own)
	read, _ := config.New(copied) // plumb doctor names what is wrong with Plumbline's own keys
	return read
}

var badKey = regexp.MustCompile(`^key "([^"]+)": `)

// badKeys returns what is wrong with each key, from the error of config.New.
func badKeys(err error) map[string]string {
	bad := map[string]string{}
	if err == nil {
		return bad
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if found := badKey.FindStringSubmatch(line); found != nil {
			bad[found[1]] = line
		}
	}
	return bad
}

// app reads the GitHub App's Secret of an installation, nil if it has none. needed says that a
// Repository is served by the App.
func (s *surveyor) app(ctx context.Context, i Installation, needed bool) (*corev1.Secret, error) {
	secret, err := s.cluster.Kube.CoreV1().Secrets(i.Namespace).Get(ctx, i.Secret, metav1.GetOptions{})
	object := i.Namespace + "/" + i.Secret
	switch {
	case apierrors.IsNotFound(err) && needed:
		s.add(Finding{
			Kind:   Blocks,
			Topic:  Cluster,
			Says:   "the Secret of the GitHub App does not exist, and Repositories name no other credentials",
			Remedy: "create it, or name the token and the webhook's secret in git_provider of the Repositories",
		}, "", object)
		return nil, nil
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, s.unlessForbidden("reading Secret "+object, err)
	}
	if _, err := credentials.App(secret); err != nil && needed {
		s.add(Finding{Kind: Blocks, Topic: Cluster, Says: err.Error()}, "", object)
		return nil, nil
	}
	if needed && len(secret.Data[webhookKey]) == 0 {
		s.add(Finding{
			Kind: Blocks, Topic: Cluster,
			Says: "the Secret of the GitHub App has no key " + webhookKey + ": no delivery could be verified",
		}, "", object)
	}
	return secret, nil
}
