// SPDX-License-Identifier: Apache-2.0

// Package kube connects commands of plumb to the cluster of a kubeconfig, and explains what the API
// server refuses.
package kube

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned"
)

// Flags say which cluster is meant.
type Flags struct {
	// Kubeconfig is a file; empty means KUBECONFIG or ~/.kube/config. Context is one of its
	// contexts; empty means the current one.
	Kubeconfig, Context string
}

// Cluster has the clients of one cluster.
type Cluster struct {
	Config  *rest.Config
	Kube    kubernetes.Interface
	Own     versioned.Interface
	Dynamic dynamic.Interface
	// Metadata reads labels and annotations without the rest of an object.
	Metadata metadata.Interface
	// Namespace is that of the kubeconfig's context, "default" if it has none.
	Namespace string
	// Host is the API server's address without a user.
	Host string
}

// The limits of calls: a command makes a few hundred at once and ends.
const (
	callsPerSecond = 50
	burst          = 100
)

// Connect reads the kubeconfig. It makes no call.
func (f Flags) Connect() (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.Context}
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	cfg, err := loaded.ClientConfig()
	if err != nil {
		if clientcmd.IsEmptyConfig(err) {
			return nil, errors.New("the kubeconfig names no cluster: say with --kubeconfig which file does, or set KUBECONFIG")
		}
		return nil, fmt.Errorf("the kubeconfig names no cluster: %w", err)
	}
	cfg.UserAgent, cfg.QPS, cfg.Burst = "plumb", callsPerSecond, burst
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig names no namespace: %w", err)
	}
	c := &Cluster{Config: cfg, Namespace: namespace, Host: withoutUser(cfg.Host)}
	if c.Kube, err = kubernetes.NewForConfig(cfg); err != nil {
		return nil, fmt.Errorf("the kubeconfig cannot be used: %w", err)
	}
	if c.Own, err = versioned.NewForConfig(cfg); err != nil {
		return nil, fmt.Errorf("the kubeconfig cannot be used: %w", err)
	}
	if c.Dynamic, err = dynamic.NewForConfig(cfg); err != nil {
		return nil, fmt.Errorf("the kubeconfig cannot be used: %w", err)
	}
	if c.Metadata, err = metadata.NewForConfig(cfg); err != nil {
		return nil, fmt.Errorf("the kubeconfig cannot be used: %w", err)
	}
	return c, nil
}

// withoutUser returns an address without the user and password that it may contain.
func withoutUser(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return address
	}
	u.User = nil
	return u.String()
}

// refusal and pathRefusal are how the API server words a missing right.
var (
	refusal = regexp.MustCompile(
		`cannot (\S+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?`)
	pathRefusal = regexp.MustCompile(`cannot (\S+) path "([^"]+)"`)
)

// Right returns the right that a refused call needs, for example "get secrets in namespace ci" or
// "get /version". It is empty for any other error.
func Right(err error) string {
	if !apierrors.IsForbidden(err) {
		return ""
	}
	if parts := pathRefusal.FindStringSubmatch(err.Error()); parts != nil {
		return parts[1] + " " + parts[2]
	}
	parts := refusal.FindStringSubmatch(err.Error())
	if parts == nil {
		return err.Error() // an admission plugin or another authorizer refused
	}
	return NameRight(parts[1], parts[2], parts[3], parts[4])
}

// NameRight returns the name of a right as Right does.
func NameRight(verb, resource, group, namespace string) string {
	right := verb + " " + resource
	if group != "" {
		right += "." + group
	}
	if namespace != "" {
		return right + " in namespace " + namespace
	}
	return right + " in all namespaces"
}

// Unavailable reports whether the API server did not respond, or could not for now: the same call
// may succeed later.
func Unavailable(err error) bool {
	if answer := apierrors.APIStatus(nil); errors.As(err, &answer) {
		code := answer.Status().Code
		return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
	}
	failed := net.Error(nil)
	return errors.As(err, &failed)
}

// Failed says what a call was for, why it failed and what to do.
func Failed(what string, err error) error {
	switch right := Right(err); {
	case right != "":
		return fmt.Errorf("%s: this account lacks the right to %s: ask an administrator of the cluster for it", what, right)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s: %w: check its name, its namespace and the kubeconfig's context", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
