// SPDX-License-Identifier: Apache-2.0

// Package preflight finds the problems of an installation of Plumbline, and says how to fix them:
// kinds, rights, the App's Secret, Services that select the wrong pods, Git services that are not
// called, and versions of Pipelines-as-Code or Tekton that do not fit. It changes nothing.
//
// It runs with the account of its caller and needs few rights: what every account may read
// (discovery, its own rights, Tekton's version), what the component reads anyway, and a few objects
// by name for which config/ grants them.
package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned"
	pacclient "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
)

// Component is the component whose installation is checked: the name of its ServiceAccount.
type Component string

// The components that config/ installs.
const (
	Controller Component = "plumbline-controller"
	Receiver   Component = "plumbline-receiver"
)

// Options are those that the component was started with.
type Options struct {
	Component Component
	// Namespace is where Plumbline is installed.
	Namespace string
	// AppSecret is the name of the Secret with the GitHub App's credentials.
	AppSecret string
	// ConfigMap is the name of the ConfigMap with the settings; empty means the default.
	ConfigMap string
	// Coexist means that a running Pipelines-as-Code is intended, and no finding.
	Coexist bool
}

// configMap is the name of the ConfigMap with the settings.
func (o Options) configMap() string { return cmp.Or(o.ConfigMap, config.Name) }

// The time limits of one call and of all of them.
const (
	callBudget = 10 * time.Second
	budget     = time.Minute
)

// Checker checks one installation.
type Checker struct {
	Options
	// account is the user whose rights are checked; empty means the caller.
	account      string
	kube         kubernetes.Interface
	repositories pacclient.RepositoriesGetter
	// fetch reads a path that is no object: discovery and schemas.
	fetch func(ctx context.Context, path string) ([]byte, error)
	want  *wanted
	// onPurpose is the setting because of which Pipelines-as-Code runs, set by Run.
	onPurpose string
}

// New returns a Checker with a client of its own, whose user agent names preflight. It makes no
// call. An error means that this binary contains manifests that cannot be read.
func New(cfg *rest.Config, o Options) (*Checker, error) {
	own := rest.CopyConfig(cfg)
	own.UserAgent, own.Timeout = cmp.Or(string(o.Component), "plumb")+"/preflight", callBudget
	kube, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("making the client of the preflight: %w", err)
	}
	ours, err := versioned.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("making the client of the preflight: %w", err)
	}
	want, err := readWanted()
	if err != nil {
		return nil, err
	}
	fetch := func(ctx context.Context, path string) ([]byte, error) {
		result := kube.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").Do(ctx)
		data, _ := result.Raw()
		return data, result.Error() // unlike Raw's error it has the API server's message
	}
	return &Checker{Options: o, kube: kube, repositories: ours.PipelinesascodeV1alpha1(), fetch: fetch, want: want}, nil
}

// Run checks everything that concerns the component. What cannot be checked is a finding, too. The
// receiver's account may read neither the App's Secret nor the objects of the last checks; the
// controller checks these.
func (c *Checker) Run(ctx context.Context) []Finding {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	findings := c.kubernetes(ctx)
	if Unanswered(findings) {
		return findings // every other line would say the same
	}
	return append(findings, c.others(ctx)...)
}

// Awaited returns what the component cannot work without: Plumbline's kinds with all fields that
// this binary writes and, for the controller, those of Tekton. An error means that the API server
// did not respond, or could not for now: call it again. What this account may not read is not
// awaited.
func (c *Checker) Awaited(ctx context.Context) (awaited []Finding, err error) {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	all := c.definitions(ctx)
	if c.Component == Controller {
		all = append(all, c.tekton(ctx)...)
	}
	for _, f := range all {
		if f.Err != nil && !refused(f.Err) {
			return nil, f.Err
		}
		if f.Awaited {
			awaited = append(awaited, f)
		}
	}
	return awaited, nil
}

// refused reports whether the API server refused a call, and not only for now: an overloaded one
// answers 429 or 5xx.
func refused(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	code := answer.Status().Code
	return code != http.StatusTooManyRequests && code < http.StatusInternalServerError
}

func (c *Checker) others(ctx context.Context) []Finding {
	checks := []func(context.Context) []Finding{c.definitions, c.tekton, c.rights}
	if c.Component == Controller {
		checks = append(checks, c.secret, c.services, c.repositoriesOfTeams, c.ignoredKeys, c.pipelinesAsCode)
	} else {
		checks = append(checks, c.copies, c.excess)
	}
	var all []Finding
	for _, check := range checks {
		all = append(all, check(ctx)...)
	}
	return all
}
