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
var errNoPaC = errors.New("no controller of Pipelines-as-Code was found: there is no Deployment called " + pac.ControllerName +
	", and none that sets PAC_CONTROLLER_CONFIGMAP. If it is stopped, its Deployment must still exist. " +
	"--pac-namespace names its namespace if this account may not list Deployments")

// installations finds the controllers of Pipelines-as-Code.
func (s *surveyor) installations(ctx context.Context) ([]pac.Controller, error) {
	deployments, err := s.deployments(ctx)
	if err != nil {
		return nil, err
	}
	var found []pac.Controller
	for i := range deployments {
		if one, is := pac.ControllerOf(&deployments[i]); is {
			found = append(found, one)
		}
	}
	if len(found) == 0 && len(s.rights) == 0 {
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

// examine reports what an installation says for all Repositories, and returns its settings as
// Plumbline reads them.
func (s *surveyor) examine(ctx context.Context, i pac.Controller) (*config.Config, error) {
	if i.Operator {
		s.add(Finding{
			Kind: Differs, Topic: Cluster, Page: pageOfOperator,
			Says:   "the Tekton operator installed this controller, and restores what is changed or deleted",
			Remedy: "follow the steps for the operator",
		}, "", i.Namespace+"/"+i.Deployment)
	}
	configMap, err := s.cluster.Kube.CoreV1().ConfigMaps(i.Namespace).Get(ctx, i.ConfigMap, metav1.GetOptions{})
	switch {
	case err == nil:
		return s.settings(i, configMap.Data), nil
	case apierrors.IsNotFound(err):
		return config.Default(), nil
	}
	return config.Default(), s.unlessForbidden("reading ConfigMap "+i.Namespace+"/"+i.ConfigMap, err)
}

// settings reports on each key of a ConfigMap.
func (s *surveyor) settings(i pac.Controller, data map[string]string) *config.Config {
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
	read, err := config.New(copied)
	bad := badKeys(err)
	for _, name := range slices.Sorted(maps.Keys(copied)) {
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
			Kind:  Blocks,
			Topic: Cluster,
			Says:  "the Secret of the GitHub App does not exist, and Repositories are served by the App",
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
