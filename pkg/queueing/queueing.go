// SPDX-License-Identifier: Apache-2.0

// Package queueing has a run wait for a slot where its Repository has a concurrency_limit. Who gets one is decided by the repository
// reconciler alone, in the status of the Repository; here is what an event does about it.
package queueing

import (
	"context"
	"slices"
	"time"

	tektonv1 "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/typed/pipeline/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/attempt"
	paclisters "github.com/plumbline-ci/plumbline/pkg/client/listers/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/cluster"
	"github.com/plumbline-ci/plumbline/pkg/concurrency"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/kept"
)

// Look is how often a run that waits looks for its slot although nothing has told of a change.
const Look = 5 * time.Minute

// Line is what the events of an installation know of slots. All of it comes from caches.
type Line struct {
	// installation is Plumbline's namespace, and global the name of the global Repository there, "" for none.
	installation, global string
	repositories         paclisters.RepositoryLister
	open                 cluster.Open
	tekton               tektonv1.PipelineRunsGetter
}

// New returns the line of an installation.
func New(c cluster.Cluster, o cluster.Options) *Line {
	return &Line{installation: o.Namespace, global: o.GlobalRepository, repositories: c.Repositories, open: c.Open, tekton: c.Tekton}
}

// limit is how many runs of a Repository run at once, 0 for no limit.
func (l *Line) limit(repository *pacv1alpha1.Repository) int {
	var global *pacv1alpha1.RepositorySpec
	if found, err := l.repositories.Repositories(l.installation).Get(l.global); err == nil { // no other error than that it is not there
		global = &found.Spec
	}
	return repository.Spec.Concurrency(global)
}

// Due creates a run when it has a slot, or needs none, and it is its time. One that is cancelled waits for nothing: do finds out whether
// it is there.
func (l *Line) Due(ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run, do func() error) error {
	if a.Event.Cancelled(run.Pipeline) != nil {
		return do()
	}
	if err := l.wait(ctx, a, run); err != nil {
		return err
	}
	return a.Waits.Due(v1alpha1.StepCreate+run.Name, do)
}

// wait returns why a run that may be created waits for a slot: a Throttled fault with fault.ReasonConcurrencyLimit, or that its
// Repository is gone, or that it is refused. It is nil if there is no limit or the run has its slot: nobody is asked for that unless the
// cache does not have the Repository.
func (l *Line) wait(ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run) error {
	repository, err := a.Git.Repository(ctx)
	if err != nil {
		return err
	}
	wait := a.Waits.Of(v1alpha1.StepCreate + run.Name)
	waited := wait != nil && wait.Reason == fault.ReasonConcurrencyLimit
	if repository == nil {
		if !waited {
			return nil // the create itself finds out what that means
		}
		ref := a.Event.Spec.Repository
		return fault.Operatorf(credentials.ReasonRepositoryGone, "Repository %s/%s is gone", ref.Namespace, ref.Name)
	}
	limit := l.limit(repository)
	if limit == 0 || repository.Status.HasSlot(l.installation, a.Event.Name, run.Name) {
		return nil
	}
	before := ""
	if waited {
		before = wait.Message
	} else if err := l.invalid(ctx, a, run); err != nil {
		return err
	}
	slots := repository.Status.Slots()
	line := concurrency.Line(l.open.Of(repository.Namespace, repository.Name), slots)
	place := slices.Index(line, pacv1alpha1.Slot{Run: run.Name, Event: a.Event.Name}) + 1
	if place == 0 {
		place = len(line) + 1 // the cache does not have it yet
	}
	return fault.Throttledf(fault.ReasonConcurrencyLimit, Look, "%s",
		concurrency.Says(before, concurrency.Standing{
			Repository: repository.Namespace + "/" + repository.Name, Limit: limit, Place: place, Priority: concurrency.Priority(a.Event),
		}, slots))
}

// invalid asks once, before a run waits, whether the API server and its webhooks refuse it as the author's text is: an author who is wrong
// learns that at once, and not when the line is at its end. Whatever else that dry run meets is met again at the create. A run that is
// there already, because an earlier create landed, is not refused.
func (l *Line) invalid(ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run) error {
	values, err := a.Kept.Values(ctx)
	if err != nil {
		return err
	}
	manifest, err := a.Kept.Manifest(ctx, run.Name)
	if err != nil {
		return err
	}
	if manifest, err = kept.Reveal(manifest, values); err != nil {
		return err
	}
	runs := l.tekton.PipelineRuns(run.Namespace)
	_, err = runs.Create(ctx, manifest, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil {
		return nil
	}
	refused := fault.FromKube(fault.VerbCreate, err)
	if refused.Class != fault.Invalid {
		return nil
	}
	if _, err = runs.Get(ctx, run.Name, metav1.GetOptions{}); !fault.Gone(err) {
		return nil
	}
	return kept.Masked(refused, values)
}

// Changed wakes, in their order, the events that wait for a slot when the slots or the limit of their Repository have changed. Before and
// after are what an informer tells: before is nil when the Repository was created, or deleted.
func (l *Line) Changed(before, after any, wake func(event string, after time.Duration)) {
	if gone, missed := after.(cache.DeletedFinalStateUnknown); missed {
		after = gone.Obj
	}
	was, _ := before.(*pacv1alpha1.Repository)
	is, ok := after.(*pacv1alpha1.Repository)
	if !ok || was != nil && equality.Semantic.DeepEqual(was.Spec.ConcurrencyLimit, is.Spec.ConcurrencyLimit) &&
		equality.Semantic.DeepEqual(was.Status.Queues, is.Status.Queues) {
		return
	}
	events := l.open.Of(is.Namespace, is.Name)
	if is.Namespace == l.installation && is.Name == l.global { // it completes all of them
		events, _ = l.open.List(labels.Everything()) // a list of a cache has no error
	}
	var woken []string
	for _, slot := range concurrency.Line(events, nil) {
		if !slices.Contains(woken, slot.Event) {
			woken = append(woken, slot.Event)
			wake(slot.Event, 0)
		}
	}
}
