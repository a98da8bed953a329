// SPDX-License-Identifier: Apache-2.0

package survey

import (
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

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/pac"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
)

const (
	webhookKey     = "webhook.secret"
	pageOfOperator = "docs/migration.md#three-traps"
	pageOfSettings = "docs/migration.md#settings-that-do-nothing"
)

// usualNamespaces are where its manifests and the Tekton operator install Pipelines-as-Code.
func usualNamespaces() []string {
	return []string{"pipelines-as-code", "openshift-pipelines", "tekton-pipelines"}
}

// errNoPaC is returned for a cluster without Pipelines-as-Code.
var errNoPaC = errors.New(
	"no controller of Pipelines-as-Code was found: there is no Deployment called " + pac.ControllerName +
		", and none that sets PAC_CONTROLLER_CONFIGMAP. If it is stopped, its Deployment must still exist. " +
		"--pac-namespace names its namespace if this account may not list Deployments",
)

// installations finds the controllers of Pipelines-as-Code.
func (s *surveyor) installations(ctx context.Context) ([]pac.Controller, error) {
	missing := len(s.rights)
	deployments, err := s.deployments(ctx)
	if err != nil {
		return nil, err
	}
	var usual, additional []pac.Controller
	for i := range deployments {
		one, is := pac.ControllerOf(&deployments[i])
		switch {
		case is && one.Deployment == pac.ControllerName:
			usual = append(usual, one)
		case is:
			additional = append(additional, one)
		}
	}
	found := slices.Concat(usual, additional)
	if len(found) == 0 && len(s.rights) == missing {
		return nil, errNoPaC
	}
	return found, nil
}

// deployments lists those of all namespaces. An account that may not do that reads the usual ones.
func (s *surveyor) deployments(ctx context.Context) ([]appsv1.Deployment, error) {
	all, err := pac.Deployments(ctx, s.cluster.Kube, s.Namespace)
	if !apierrors.IsForbidden(err) || s.Namespace != "" {
		return all, s.unlessForbidden("reading Deployments", err)
	}
	for _, namespace := range usualNamespaces() {
		one, err := s.cluster.Kube.AppsV1().Deployments(namespace).Get(ctx, pac.ControllerName, metav1.GetOptions{})
		if err == nil {
			all = append(all, *one)
		} else if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("reading Deployment %s/%s: %w", namespace, pac.ControllerName, err)
		}
	}
	if len(all) == 0 {
		s.note(err)
	}
	return all, nil
}

// examine reports what an installation says for all Repositories, and returns the settings that
// Plumbline has with its keys. own are the keys of Plumbline's ConfigMap.
func (s *surveyor) examine(ctx context.Context, i pac.Controller, own map[string]string) (*config.Config, error) {
	if i.Operator {
		s.add(Finding{
			Kind: Differs, Topic: Cluster, Page: pageOfOperator,
			Says:   "the Tekton operator installed this controller, and restores what is changed or deleted",
			Remedy: "follow the steps for the operator",
		}, "", i.Namespace+"/"+i.Deployment)
	}
	for _, name := range i.Network {
		s.add(Finding{
			Kind: Differs, Topic: Cluster, Page: "docs/install.md#a-proxy",
			Says:   i.Namespace + "/" + i.Deployment + " reaches its Git services with these variables",
			Remedy: "set them for Plumbline's Deployments, if Git services are not reached without them",
		}, "", name)
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
func (s *surveyor) settings(i pac.Controller, data, own map[string]string) *config.Config {
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
		report(Same, "the keys have the same names and meanings",
			"copy their values to ConfigMap plumbline, as plumb migrate start does", name)
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
func (s *surveyor) app(ctx context.Context, i pac.Controller, needed bool) (*corev1.Secret, error) {
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
