// SPDX-License-Identifier: Apache-2.0

// Package preflight tells what is wrong with an installation of Plumbline and how to mend it:
// kinds, rights, the App's Secret, Services that select the wrong pods, Git services that are not
// called, a Pipelines-as-Code or a Tekton that does not fit. It changes nothing.
//
// It asks as whoever runs it and needs few rights for it: what every account may read (discovery,
// its own rights, Tekton's version), what the component reads anyway, and a few objects by name
// that config/ grants it for this.
package preflight

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned"
	pacclient "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/pipelinesascode/v1alpha1"
)

// Component is whose installation is looked at: the name of its ServiceAccount.
type Component string

// The components that config/ installs.
const (
	Controller Component = "plumbline-controller"
	Receiver   Component = "plumbline-receiver"
)

// Options say what the component was started with.
type Options struct {
	Component Component
	// Namespace is where Plumbline is installed.
	Namespace string
	// AppSecret is the name of the Secret with the GitHub App's credentials.
	AppSecret string
	// Coexist: a running Pipelines-as-Code is wanted, and no finding.
	Coexist bool
}

// What one call and all of them may take.
const (
	callBudget = 10 * time.Second
	budget     = time.Minute
)

// Checker looks at one installation.
type Checker struct {
	Options
	kube         kubernetes.Interface
	repositories pacclient.RepositoriesGetter
	// fetch reads a path that is no object: discovery and schemas.
	fetch func(ctx context.Context, path string) ([]byte, error)
	want  *wanted
}

// New makes a Checker with a client of its own, whose calls name preflight as their user agent; it
// makes no call. An error means that this binary holds manifests that cannot be read.
func New(cfg *rest.Config, o Options) (*Checker, error) {
	own := rest.CopyConfig(cfg)
	own.UserAgent, own.Timeout = string(o.Component)+"/preflight", callBudget
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
		return kube.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw(ctx)
	}
	return &Checker{Options: o, kube: kube, repositories: ours.PipelinesascodeV1alpha1(), fetch: fetch, want: want}, nil
}

// Run looks at everything that concerns the component. What cannot be looked at is a finding, too.
// The receiver's account may not read the App's Secret, nor what the last checks look at; the
// controller's finds it.
func (c *Checker) Run(ctx context.Context) []Finding {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	if finding, answered := c.kubernetesVersion(ctx); !answered {
		return []Finding{finding} // every other line would say the same
	} else if finding.Object != "" {
		return append([]Finding{finding}, c.rest(ctx)...)
	}
	return c.rest(ctx)
}

func (c *Checker) rest(ctx context.Context) []Finding {
	checks := []func(context.Context) []Finding{c.definitions, c.tekton, c.rights}
	if c.Component == Controller {
		checks = append(checks, c.secret, c.services, c.repositoriesOfTeams, c.PipelinesAsCode)
	} else {
		checks = append(checks, c.copies, c.excess)
	}
	var all []Finding
	for _, check := range checks {
		all = append(all, check(ctx)...)
	}
	return all
}
