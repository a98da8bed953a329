// SPDX-License-Identifier: Apache-2.0

// Package lost closes the checks of PipelineRuns whose GitEvent does not report any more how they end: it was deleted, or it settled
// because nobody could be told. Nobody else would conclude them ever. See docs/adr/0032.
package lost

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	pacclient "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/pipelinesascode/v1alpha1"
	plumblineclient "github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned/typed/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/resources"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

const (
	// age is how old a run must be: by then whoever creates runs has recorded it, and a person who deletes an event by mistake has
	// had its delivery sent again, which adopts the run.
	age = time.Hour
	// limit bounds the calls for one run. It is longer than a Git service takes that works.
	limit = 20 * time.Second
	// again is how long a run that could not be closed is left alone, and the Git host that failed.
	again = time.Hour
	// maxFailed bounds what is remembered of failures; forgetting costs attempts.
	maxFailed = 10_000
)

// Closer closes checks. It is for one goroutine.
type Closer struct {
	// Events, Claims and Repositories are read live: nothing is closed on a cache's word.
	Events       plumblineclient.GitEventInterface
	Claims       plumblineclient.RepositoryClaimInterface
	Repositories pacclient.RepositoriesGetter
	// Runs patches PipelineRuns.
	Runs        metadata.Getter
	Credentials *credentials.Keeper
	Providers   map[string]provider.Provider
	Clock       clock.PassiveClock

	failed map[string]time.Time // when a run or a host has failed
}

// Close closes the check of a run that no event reports any more, and tells whether it asked a Git service. A run whose check is
// closed is labelled as completed, so that nobody lists it any more. The error is why the check may still be open; another attempt
// within the hour does nothing.
func (c *Closer) Close(ctx context.Context, run *metav1.PartialObjectMetadata) (asked bool, err error) {
	if c.Clock.Since(run.CreationTimestamp.Time) < age || c.rests(string(run.UID)) {
		return false, nil
	}
	event, err := c.eventFor(ctx, run)
	if event == nil || err != nil {
		return false, err
	}
	service, known := c.Providers[event.Spec.Provider]
	if !known || c.rests(event.Spec.Host) {
		return false, nil
	}
	c.rest(string(run.UID)) // also when it is closed: the label may be refused
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	id, err := c.report(ctx, event, run.Annotations[pipelinesascode.CheckRunID])
	if err != nil {
		if f := fault.Of(err); f.Class == fault.Transient || f.Class == fault.Throttled {
			c.rest(event.Spec.Host)
		}
		return true, fmt.Errorf("closing the check of PipelineRun %s/%s: %w", run.Namespace, run.Name, err)
	}
	return true, c.label(ctx, service, run, id)
}

// eventFor returns the event to report the run with, and no other run; nil if there is none.
func (c *Closer) eventFor(ctx context.Context, run *metav1.PartialObjectMetadata) (*v1alpha1.GitEvent, error) {
	name := run.Labels[plumbline.EventLabel]
	if len(validation.IsDNS1123Subdomain(name)) != 0 { // no event ever had that name
		return nil, nil
	}
	event, err := c.Events.Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		return unreported(event, run), nil
	}
	if !fault.Gone(err) {
		return nil, kube("reading GitEvent "+name, err)
	}
	repository, bound, err := c.servedBy(ctx, run)
	if bound == nil || err != nil { // with the Repository went the right to report
		return nil, err
	}
	return eventOf(run, repository, *bound), nil
}

// report closes the check at the Git service.
func (c *Closer) report(ctx context.Context, event *v1alpha1.GitEvent, id string) (string, error) {
	settings := config.FromContext(ctx)
	session := c.Credentials.Begin(event, settings)
	defer session.End(false, false)
	client, err := session.Connect(ctx)
	if err != nil {
		return "", err
	}
	spec, run := &event.Spec, event.Status.Runs[0]
	in := status.Input{Application: settings.ApplicationName, Event: event, Runs: []status.RunState{{Run: run, Links: settings.Console.Links(run.Namespace, run.Name)}}}
	head := git.Head{SHA: spec.SHA, Project: spec.Project, Ref: spec.HeadRef, PullRequest: spec.PullRequest}
	for _, check := range status.Desired(in) {
		check.OnlyOpen = true // what was reported before is not known
		if id, err = client.Put(ctx, head, id, check, false); err != nil {
			return "", err
		}
	}
	return id, nil
}

// label marks the run as reported. It is not needed for anything else: without it the check is looked at again.
func (c *Closer) label(ctx context.Context, service provider.Provider, run *metav1.PartialObjectMetadata, id string) error {
	labels, annotations := map[string]string{}, map[string]string{}
	if id != "" {
		labels, annotations = service.Metadata(id)
	}
	labels[pipelinesascode.State], annotations[pipelinesascode.State] = pipelinesascode.StateCompleted, pipelinesascode.StateCompleted
	_, err := c.Runs.Namespace(run.Namespace).Patch(ctx, run.Name, types.MergePatchType, resources.AnnotationPatch(labels, annotations), metav1.PatchOptions{})
	if err == nil || fault.Gone(err) {
		return nil
	}
	return fault.FromKube(fault.VerbPatch, fmt.Errorf("labelling PipelineRun %s/%s: %w", run.Namespace, run.Name, err))
}

// servedBy returns the Repository that a run is of, and what its URL is bound to at the Git service; nil if that is not certain.
// Whoever may create PipelineRuns in a namespace may give them any label and annotation. So these do not say where the namespace
// may report to: the claim of the Repository's URL does.
func (c *Closer) servedBy(ctx context.Context, run *metav1.PartialObjectMetadata) (v1alpha1.RepositoryReference, *v1alpha1.ProjectIdentity, error) {
	none, name := v1alpha1.RepositoryReference{}, run.Annotations[pipelinesascode.Repository]
	if len(validation.IsDNS1123Subdomain(name)) != 0 {
		return none, nil, nil
	}
	repository, err := c.Repositories.Repositories(run.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return none, nil, unlessGone("reading Repository "+run.Namespace+"/"+name, err)
	}
	canonical, invalid := v1alpha1.CanonicalURL(repository.Spec.URL)
	if invalid != nil || !v1alpha1.SameURL(canonical, run.Annotations[pipelinesascode.RepoURL]) {
		return none, nil, nil //nolint:nilerr // a Repository with such a URL has no claim
	}
	claim, err := c.Claims.Get(ctx, v1alpha1.ClaimName(canonical), metav1.GetOptions{})
	if err != nil {
		return none, nil, unlessGone("reading the RepositoryClaim of "+canonical, err)
	}
	owner, bound := claim.Spec.Repository, claim.Status.Bound
	if owner.Namespace != run.Namespace || owner.Name != name || bound == nil || bound.RepositoryUID != repository.UID {
		return none, nil, nil
	}
	return v1alpha1.RepositoryReference{Namespace: run.Namespace, Name: name, UID: repository.UID, URL: repository.Spec.URL}, &bound.ProjectIdentity, nil
}

func unlessGone(what string, err error) error {
	if fault.Gone(err) {
		return nil
	}
	return kube(what, err)
}

func kube(what string, err error) error {
	if err == nil {
		return nil
	}
	return fault.FromKube(fault.VerbRead, fmt.Errorf("%s: %w", what, err))
}

// rests tells whether something has failed within the last hour.
func (c *Closer) rests(what string) bool {
	at, found := c.failed[what]
	return found && c.Clock.Since(at) < again
}

func (c *Closer) rest(what string) {
	if c.failed == nil || len(c.failed) >= maxFailed {
		c.failed = map[string]time.Time{}
	}
	c.failed[what] = c.Clock.Now()
}
