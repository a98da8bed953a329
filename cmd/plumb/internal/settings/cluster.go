// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/kube"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

// Cluster says where to read settings from.
type Cluster struct {
	// Kubeconfig is a file; empty means KUBECONFIG or ~/.kube/config. Context is one of its
	// contexts; empty means the current one.
	Kubeconfig, Context string
	// Namespace is the Repository's, empty for all; System is Plumbline's own, and ConfigMap the
	// name of its settings.
	Namespace, System, ConfigMap string
	// Global is the name of the global Repository, empty for none.
	Global string
}

// clients read and never write.
type clients struct {
	Cluster
	kube kubernetes.Interface
	own  versioned.Interface
	host string
}

// Complete reads from the cluster what the files lack: the Repository of a URL, the settings that
// the global Repository adds, and the ConfigMap.
func (s *Settings) Complete(ctx context.Context, from Cluster, url string, haveConfig bool) error {
	c, err := from.connect()
	if err != nil {
		return err
	}
	if !haveConfig {
		if err := c.readConfig(ctx, s); err != nil {
			return err
		}
	}
	if s.Repository == nil {
		if s.Repository, err = c.repository(ctx, url); err != nil {
			return err
		}
	}
	global, err := c.global(ctx)
	if err != nil {
		return err
	}
	if global != nil && (global.Namespace != s.Repository.Namespace || global.Name != s.Repository.Name) {
		s.Repository.Spec = *s.Repository.Spec.WithGlobal(&global.Spec)
	}
	s.Secret = c.secret(s.Repository.Namespace)
	return nil
}

func (c Cluster) connect() (*clients, error) {
	to, err := kube.Flags{Kubeconfig: c.Kubeconfig, Context: c.Context}.Connect()
	if err != nil {
		return nil, fmt.Errorf("--from-cluster: %w", err)
	}
	return &clients{Cluster: c, kube: to.Kube, own: to.Own, host: to.Host}, nil
}

// failed returns an error that says what could not be read, and which flag makes the read
// unnecessary.
func (c *clients) failed(what, instead string, err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("--from-cluster: you may not read %s in %s: %s", what, c.host, instead)
	}
	return fmt.Errorf("--from-cluster: reading %s: %w: %s", what, err, instead)
}

func (c *clients) readConfig(ctx context.Context, s *Settings) error {
	name := cmp.Or(c.ConfigMap, config.Name)
	configMap, err := c.kube.CoreV1().ConfigMaps(c.System).Get(ctx, name, metav1.GetOptions{})
	what := "ConfigMap " + c.System + "/" + name
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf(
			"--from-cluster: there is no %s in %s: say with --system-namespace where Plumbline is installed, or give the ConfigMap with --config",
			what, c.host,
		)
	case err != nil:
		return c.failed(what, "give it with --config", err)
	}
	s.configure(configMap.Data)
	return nil
}

// repository returns the one Repository of a URL. If there are several, it returns the one that
// Plumbline serves.
func (c *clients) repository(ctx context.Context, url string) (*pacv1alpha1.Repository, error) {
	list, err := c.own.PipelinesascodeV1alpha1().Repositories(c.Namespace).List(ctx, metav1.ListOptions{})
	where := cmp.Or(c.Namespace, "all namespaces")
	if err != nil {
		return nil, c.failed("the Repositories of "+where,
			"name its namespace with --namespace, or give it with --repository", err)
	}
	var found, ready []*pacv1alpha1.Repository
	for i := range list.Items {
		repository := &list.Items[i]
		if !v1alpha1.SameURL(repository.Spec.URL, url) {
			continue
		}
		found = append(found, repository)
		if condition := repository.Status.GetCondition("Ready"); condition != nil && condition.IsTrue() {
			ready = append(ready, repository)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(ready) == 1:
		return ready[0], nil
	case len(found) == 0:
		return nil, fmt.Errorf(
			"--from-cluster: no Repository in %s of %s has the URL %s: create one, or give it with --repository", where, c.host,
			url,
		)
	}
	var names []string
	for _, repository := range found {
		names = append(names, repository.Namespace+"/"+repository.Name)
	}
	return nil, fmt.Errorf("--from-cluster: the URL %s has several Repositories (%s): choose one with --namespace", url,
		strings.Join(names, ", "))
}

// global returns the global Repository, nil when there is none.
func (c *clients) global(ctx context.Context) (*pacv1alpha1.Repository, error) {
	if c.Global == "" {
		return nil, nil
	}
	global, err := c.own.PipelinesascodeV1alpha1().Repositories(c.System).Get(ctx, c.Global, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, c.failed("the global Repository "+c.System+"/"+c.Global, "leave it out with --global-repository=", err)
	}
	return global, nil
}

// secret reads values of Secrets in a namespace.
func (c *clients) secret(namespace string) func(context.Context, template.SecretRef) (string, error) {
	return func(ctx context.Context, ref template.SecretRef) (string, error) {
		secret, err := c.kube.CoreV1().Secrets(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return "", fault.Operatorf(fault.ReasonSecretMissing, "a custom param needs secret %s/%s, which cannot be read: %w",
				namespace, ref.Name, err)
		}
		value, found := secret.Data[ref.Key]
		if !found {
			return "", fault.Operatorf(fault.ReasonSecretMissing,
				"a custom param needs the key %s of secret %s/%s, which has no such key", ref.Key, namespace, ref.Name)
		}
		return string(value), nil
	}
}
