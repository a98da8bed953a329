// SPDX-License-Identifier: Apache-2.0

package livecampaign

import (
	"context"
	"errors"
	"fmt"

	tektonclient "github.com/tektoncd/pipeline/pkg/client/clientset/versioned"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned"
	pkgfault "github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// pageSize is how many events one call lists: 2 MB or so.
	pageSize = 500
	// maxRuns is how many PipelineRuns a canary may have at the beginning: all of them are listed
	// at each look.
	maxRuns = 500
)

// clients have the rights of the user who runs the campaign.
type clients struct {
	kube      kubernetes.Interface
	tekton    tektonclient.Interface
	plumbline versioned.Interface
}

// Connect returns a campaign that has done nothing yet. kubeconfig is a file, empty for KUBECONFIG
// or ~/.kube/config; inContext one of its contexts, empty for the current one.
func Connect(kubeconfig, inContext string, o Options) (*Campaign, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: inContext}).
		ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig names no cluster: %w", err)
	}
	cfg.UserAgent = "livecampaign"
	kube, kubeErr := kubernetes.NewForConfig(cfg)
	tekton, tektonErr := tektonclient.NewForConfig(cfg)
	own, ownErr := versioned.NewForConfig(cfg)
	if err := errors.Join(kubeErr, tektonErr, ownErr); err != nil {
		return nil, fmt.Errorf("the kubeconfig cannot be used: %w", err)
	}
	return newCampaign(o, clients{kube, tekton, own}), nil
}

// served fails unless this installation serves the canary, which the claim of its URL shows.
func (c *Campaign) served(ctx context.Context) error {
	repository, err := c.plumbline.PipelinesascodeV1alpha1().
		Repositories(c.Canary.Namespace).
		Get(ctx, c.Canary.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the canary Repository: %w", err)
	}
	if len(validation.IsValidLabelValue(repository.Name)) > 0 {
		return fmt.Errorf("the name of Repository %s is no label's value: PipelineRuns cannot be told by it", c.Canary)
	}
	url, err := v1alpha1.CanonicalURL(repository.Spec.URL)
	if err != nil {
		return fmt.Errorf("the URL of Repository %s: %w", c.Canary, err)
	}
	claim, err := c.plumbline.PlumblineV1alpha1().
		RepositoryClaims(c.System).
		Get(ctx, v1alpha1.ClaimName(url), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf(
			"reading whose the URL of Repository %s is, so that the Plumbline in namespace %s serves it: %w",
			c.Canary,
			c.System,
			err,
		)
	}
	if owner := claim.Spec.Repository; owner.Namespace != c.Canary.Namespace || owner.Name != c.Canary.Name ||
		claim.Status.ReleasedAt != nil {
		return fmt.Errorf(
			"the Plumbline in namespace %s does not serve Repository %s: its URL belongs to %s/%s",
			c.System,
			c.Canary,
			owner.Namespace,
			owner.Name,
		)
	}
	return nil
}

// remember records the canary's objects that exist already.
func (c *Campaign) remember(ctx context.Context) error {
	runs, err := c.tekton.TektonV1().
		PipelineRuns(c.Canary.Namespace).
		List(ctx, metav1.ListOptions{LabelSelector: c.selector(), Limit: maxRuns})
	if err != nil {
		return fmt.Errorf("listing the PipelineRuns of the canary: %w", err)
	}
	if runs.Continue != "" {
		return fmt.Errorf(
			"the Repository %s has more than %d PipelineRuns, and each look would list them all: delete old ones first",
			c.Canary,
			maxRuns,
		)
	}
	for i := range runs.Items {
		c.known[string(runs.Items[i].UID)] = true
	}
	return c.list(ctx, "", func(event v1alpha1.GitEvent) { c.known[event.Name] = true })
}

// selector finds the canary's PipelineRuns.
func (c *Campaign) selector() string { return labels.FormatLabels(ownRuns(c.Canary.Name, c.System)) }

// ownRuns are the labels of the PipelineRuns that an installation has made for a Repository.
func ownRuns(repository, system string) map[string]string {
	return map[string]string{pipelinesascode.Repository: repository, plumbline.InstallationLabel: system}
}

// list gives all events of the canary that a field selector finds.
func (c *Campaign) list(ctx context.Context, selector string, take func(v1alpha1.GitEvent)) error {
	for o := (metav1.ListOptions{FieldSelector: selector, Limit: pageSize}); ; {
		page, err := c.plumbline.PlumblineV1alpha1().GitEvents(c.System).List(ctx, o)
		if err != nil {
			return fmt.Errorf("listing GitEvents: %w", err)
		}
		for _, event := range page.Items {
			if of := event.Spec.Repository; of.Namespace == c.Canary.Namespace && of.Name == c.Canary.Name {
				take(event)
			}
		}
		if o.Continue = page.Continue; o.Continue == "" {
			return nil
		}
	}
}

// look reads the canary. It lists open events, and reads by name those that have settled since.
// If all is set, it also lists events that arrived and settled between two looks.
func (c *Campaign) look(ctx context.Context, all bool) (look, error) {
	now := look{events: map[string]v1alpha1.GitEvent{}, refusing: c.policy != nil && c.policy.on.Load()}
	runs, err := c.tekton.TektonV1().
		PipelineRuns(c.Canary.Namespace).
		List(ctx, metav1.ListOptions{LabelSelector: c.selector()})
	if err != nil {
		return now, fmt.Errorf("listing the PipelineRuns of the canary: %w", err)
	}
	selector := v1alpha1.OpenEvents
	if all {
		selector = ""
	}
	err = c.list(ctx, selector, func(event v1alpha1.GitEvent) {
		if !c.known[event.Name] {
			now.events[event.Name] = event
		}
	})
	if err != nil {
		return now, err
	}
	if err := c.addSettled(ctx, now.events); err != nil {
		return now, err
	}
	for _, run := range runs.Items {
		name := run.Labels[plumbline.EventLabel]
		if c.known[string(run.UID)] || c.known[name] {
			continue
		}
		now.runs = append(now.runs, run)
		if err := c.read(ctx, name, now.events); err != nil {
			return now, err
		}
	}
	c.events = now.events
	return now, nil
}

// addSettled adds the events that were seen before and are not listed any more.
func (c *Campaign) addSettled(ctx context.Context, events map[string]v1alpha1.GitEvent) error {
	for name, event := range c.events {
		if _, listed := events[name]; !listed && event.Settled() {
			events[name] = event
		} else if err := c.read(ctx, name, events); err != nil {
			return err
		}
	}
	return nil
}

// read adds an event that was not listed, if there is one.
func (c *Campaign) read(ctx context.Context, name string, events map[string]v1alpha1.GitEvent) error {
	if _, listed := events[name]; listed || name == "" {
		return nil
	}
	event, err := c.plumbline.PlumblineV1alpha1().GitEvents(c.System).Get(ctx, name, metav1.GetOptions{})
	if pkgfault.Gone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading GitEvent %s: %w", name, err)
	}
	events[name] = *event
	return nil
}
