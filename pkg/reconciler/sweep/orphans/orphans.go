// SPDX-License-Identifier: Apache-2.0

// Package orphans closes the checks of PipelineRuns whose GitEvent does not report their end: it
// was deleted, or it gave up reporting. No other part of Plumbline would ever conclude these checks
// (docs/adr/0032).
package orphans

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
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
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/fairqueue"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

const (
	// minAge is how old a run must be: by then the process that created it has recorded it. A user
	// who deletes an event by mistake can have it redelivered, and the new event adopts the run.
	minAge = time.Hour
	// limit bounds the calls for one report. A healthy Git service takes less.
	limit = 20 * time.Second
	// retryFirst is the wait after a failure. For a run it doubles up to retryAtMost: otherwise a
	// check that can never be closed would be tried each time instead of others of its Repository.
	retryFirst, retryAtMost = time.Hour, 24 * time.Hour
)

// Closer closes checks. It is for one goroutine.
type Closer struct {
	// Events, Claims and Repositories are read live: nothing is closed because of a cache.
	Events       plumblineclient.GitEventInterface
	Claims       plumblineclient.RepositoryClaimInterface
	Repositories pacclient.RepositoriesGetter
	// Runs patches PipelineRuns, and Secrets their git-auth Secrets.
	Runs        metadata.Getter
	Secrets     corev1client.SecretsGetter
	Credentials *credentials.Pool
	Providers   map[string]provider.Provider
	Clock       clock.PassiveClock

	failed recent.Map[string, pause] // runs, events, Repositories and namespaces
}

// OneByOne returns the options with a queue of one worker, because a Closer calls one Git service
// after the other. An event that has to wait is tried again by a later sweep: it is removed when it
// is woken, so that nothing stays reserved for it. A nil after is time.AfterFunc.
func OneByOne(o credentials.Options, after func(time.Duration, func())) credentials.Options {
	var queue *fairqueue.Queue
	queue = fairqueue.New(fairqueue.Options{
		Workers: 1,
		Now:     o.Clock.Now,
		After:   after,
		Full:    func(string) {},
		Wake:    func(event string, _ time.Duration) { queue.Remove(event) },
	})
	o.Calls = credentials.Calls{
		Acquire: queue.Acquire,
		Observe: func(event *v1alpha1.GitEvent, a provider.CallResult) {
			queue.Observe(fairqueue.RequestOf(event, o.Clock.Now()), fairqueue.Answer(a))
		},
	}
	return o
}

// pause is how long, and until when, something is not retried.
type pause struct {
	long  time.Duration
	until time.Time
}

// Close closes the check of a run that no event reports any more. It reports whether it looked up
// the run's event, which takes up to three live reads, and whether it called a Git service. A run
// whose check is closed is labelled as completed, so that no later pass lists it. The error says
// why the check may still be open. Another attempt within the hour does nothing.
func (c *Closer) Close(ctx context.Context, run *metav1.PartialObjectMetadata) (checked, called bool, err error) {
	if c.Clock.Since(run.CreationTimestamp.Time) < minAge || isCopy(run) || c.backsOff(string(run.UID)) ||
		c.backsOff(ofNamespace(run.Namespace)) {
		return false, false, nil
	}
	event, err := c.eventFor(ctx, run)
	if event == nil || err != nil {
		return true, false, err
	}
	service, known := provider.For(c.Providers, &event.Spec)
	if !known || c.backsOff(ofRepository(event)) {
		return true, false, nil
	}
	err = c.close(ctx, run, event, service)
	return true, !notCalled(fault.Of(err)), err
}

// notCalled reports whether a fault says that the Git service may not be called now.
func notCalled(f *fault.Error) bool {
	return f != nil && (f.Reason == fault.ReasonBusy || f.Reason == provider.ReasonPaced)
}

func (c *Closer) close(
	ctx context.Context, run *metav1.PartialObjectMetadata, event *v1alpha1.GitEvent, service provider.Provider,
) error {
	c.backOff(string(run.UID), retryAtMost) // also if it gets closed: the label may be refused
	id, err := c.report(ctx, event, run.Annotations[pipelinesascode.CheckRunID], true)
	followed, wrong := c.correctVerdict(ctx, run) // also after a report that failed: it may have been accepted
	if followed || wrong != nil {
		return wrong // the event labels the run when it has reported its end
	}
	if err != nil {
		c.failedFor(string(run.UID), event, fault.Of(err).Reason)
		return fmt.Errorf("closing the check of PipelineRun %s/%s: %w", run.Namespace, run.Name, err)
	}
	return c.label(ctx, service, &event.Status.Runs[0], id)
}

// correctVerdict reports whether the run has an event again, from a redelivery after eventFor found
// none. If that event has recorded a result, it may have reported its verdict just before the
// report here replaced it: no Git service compares before it writes. So correct reports the verdict
// once more. Without a result the event reports later, and its report stays.
func (c *Closer) correctVerdict(ctx context.Context, run *metav1.PartialObjectMetadata) (followed bool, err error) {
	name := run.Labels[plumbline.EventLabel]
	event, err := c.Events.Get(ctx, name, metav1.GetOptions{})
	if fault.Gone(err) {
		return false, nil
	}
	if err != nil {
		return false, kube("reading GitEvent "+name, err)
	}
	if event = recorded(event, run); event == nil {
		return true, nil
	}
	if _, err = c.report(ctx, event, "", false); err != nil { // the id on the run is not trusted
		return true, fmt.Errorf("putting the verdict of PipelineRun %s/%s back: %w", run.Namespace, run.Name, err)
	}
	return true, nil
}

// eventFor returns the event to report the run with, without other runs; nil if there is none.
func (c *Closer) eventFor(ctx context.Context, run *metav1.PartialObjectMetadata) (*v1alpha1.GitEvent, error) {
	name := run.Labels[plumbline.EventLabel]
	if len(validation.IsDNS1123Subdomain(name)) != 0 { // no event ever had that name
		return nil, nil
	}
	event, err := c.Events.Get(ctx, name, metav1.GetOptions{})
	if err == nil { // it reports itself, or Report does after it gave up
		return nil, c.patch(ctx, event, run)
	}
	if !fault.Gone(err) {
		return nil, kube("reading GitEvent "+name, err)
	}
	repository, bound, err := c.servedBy(ctx, run)
	if bound == nil || err != nil { // without the Repository there is no right to report
		return nil, err
	}
	event = eventOf(run, repository, *bound)
	canonical, _ := v1alpha1.CanonicalURL(repository.URL)
	if _, found := config.FromContext(ctx).AtGitHub(canonical); !found && event.Spec.InstallationID != 0 {
		return nil, nil // the App has no such event
	}
	return event, nil
}

// label marks the run as reported after it has its git-auth Secret. Without the label both are
// checked again.
func (c *Closer) label(ctx context.Context, service provider.Provider, run *v1alpha1.Run, id string) error {
	if err := c.leaveSecret(ctx, run); err != nil {
		return err
	}
	return c.labelReported(ctx, service, run, id)
}

// labelReported labels the run as reported, and annotates it with the id of its check.
func (c *Closer) labelReported(ctx context.Context, service provider.Provider, run *v1alpha1.Run, id string) error {
	labels, annotations := map[string]string{}, map[string]string{}
	if id != "" {
		labels, annotations = service.Metadata(id)
	}
	resources.MarkReported(labels, annotations, run.WithoutState)
	_, err := c.Runs.Namespace(run.Namespace).
		Patch(ctx, run.Name, types.MergePatchType, resources.AnnotationPatch(labels, annotations), metav1.PatchOptions{})
	if err == nil || fault.Gone(err) {
		return nil
	}
	return fault.FromKube(fault.VerbPatch, fmt.Errorf("labelling PipelineRun %s/%s: %w", run.Namespace, run.Name, err))
}

// leaveSecret makes the run the owner of its git-auth Secret, as its event would have done. The
// Secret would otherwise stay with the Repository when the run is deleted.
func (c *Closer) leaveSecret(ctx context.Context, run *v1alpha1.Run) error {
	name := resources.SecretName(run.Key())
	_, err := c.Secrets.Secrets(run.Namespace).
		Patch(ctx, name, types.MergePatchType, resources.SecretOwnedByRunPatch(run, false), metav1.PatchOptions{})
	if err == nil || fault.Gone(err) {
		return nil
	}
	return fault.FromKube(fault.VerbPatch, fmt.Errorf("leaving secret %s/%s to its run: %w", run.Namespace, name, err))
}

// servedBy returns the Repository of a run, and what its URL is bound to at the Git service; nil if
// that is not certain. Labels and annotations of a PipelineRun are not trusted: users of its
// namespace can set them. The claim of the Repository's URL decides where the namespace may report
// to.
func (c *Closer) servedBy(
	ctx context.Context, run *metav1.PartialObjectMetadata,
) (v1alpha1.RepositoryReference, *v1alpha1.ProjectIdentity, error) {
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
	return v1alpha1.RepositoryReference{
		Namespace: run.Namespace,
		Name:      name,
		UID:       repository.UID,
		URL:       repository.Spec.URL,
	}, &bound.ProjectIdentity, nil
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

// failedFor backs off from calls that would fail like this one, for a run or an event. Users of a
// namespace can make its runs fail, and the Git service slow for them. So a failure says nothing
// about other namespaces.
func (c *Closer) failedFor(what string, event *v1alpha1.GitEvent, reason string) {
	switch reason {
	case fault.ReasonCommitUnknown: // other runs are of other commits
	case fault.ReasonGitRejected: // the refusal of one check says nothing about others
	case fault.ReasonBusy, provider.ReasonPaced: // no call was made: the next pass makes it
		c.failed.Delete(what)
	case fault.ReasonGitUnreachable, fault.ReasonTimeout, fault.ReasonCanceled:
		c.backOff(ofNamespace(event.Spec.Repository.Namespace), retryFirst)
	default:
		c.backOff(ofRepository(event), retryFirst)
	}
}

func ofNamespace(namespace string) string { return namespace + "/" }

func ofRepository(event *v1alpha1.GitEvent) string {
	return event.Spec.Repository.Namespace + "/" + event.Spec.Repository.Name
}

func (c *Closer) backsOff(what string) bool {
	last, _ := c.failed.Get(what)
	return c.Clock.Now().Before(last.until)
}

// backOff doubles the wait before something is retried, up to most.
func (c *Closer) backOff(what string, most time.Duration) {
	c.failed.Update(what, func(last pause, _ bool) (pause, bool) {
		long := min(most, max(retryFirst, 2*last.long))
		return pause{long: long, until: c.Clock.Now().Add(long)}, true
	})
}
