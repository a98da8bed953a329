// SPDX-License-Identifier: Apache-2.0

// Package queue has a run wait for a slot where its Repository has a concurrency_limit. Who gets
// one is decided by the repository reconciler alone, in the status of the Repository; here is what
// an event does about it.
package queue

import (
	"context"
	"slices"
	"strings"
	"time"

	tektonv1 "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/typed/pipeline/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	paclisters "github.com/plumbline-ci/plumbline/pkg/client/listers/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/slots"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/clients"
	"github.com/plumbline-ci/plumbline/pkg/store/plans"
)

// Look is how often a run that waits looks for its slot although nothing has told of a change.
const Look = 5 * time.Minute

// Line is what the events of an installation know of slots. All of it comes from caches.
type Line struct {
	// installation is Plumbline's namespace, and global the name of the global Repository there, ""
	// for none.
	installation, global string
	repositories         paclisters.RepositoryLister
	open                 clients.Open
	tekton               tektonv1.PipelineRunsGetter
}

// New returns the line of an installation.
func New(c clients.Cluster, o clients.Options) *Line {
	return &Line{
		installation: o.Namespace,
		global:       o.GlobalRepository,
		repositories: c.Repositories,
		open:         c.Open,
		tekton:       c.Tekton,
	}
}

// limit is how many runs of a Repository run at once, 0 for no limit.
func (l *Line) limit(repository *pacv1alpha1.Repository) int {
	var global *pacv1alpha1.RepositorySpec
	if found, err := l.repositories.Repositories(l.installation).
		Get(l.global); err == nil { // no other error than that it is not there
		global = &found.Spec
	}
	return repository.Spec.Concurrency(global)
}

// View is the line as one attempt sees it. The line is put in order once for all runs of the event:
// thousands may wait.
type View struct {
	*Line
	a *attempt.Attempt
	// of is the version of the Repository that the places are of.
	of     *pacv1alpha1.Repository
	places map[pacv1alpha1.Slot]int
}

// Of returns the line as an attempt sees it.
func (l *Line) Of(a *attempt.Attempt) *View { return &View{Line: l, a: a} }

// Due creates a run when it has a slot, or needs none, and it is its time. One that is cancelled
// waits for nothing: do finds out whether it is there.
func (l *View) Due(ctx context.Context, run *v1alpha1.Run, do func() error) error {
	if l.a.Event.Cancelled(run.Pipeline) != nil {
		return do()
	}
	if err := l.wait(ctx, run); err != nil {
		return err
	}
	return l.a.Waits.Due(v1alpha1.StepCreate+run.Name, do)
}

// place is where a run stands, from 1 on. One that the cache does not have yet stands behind all
// others.
func (l *View) place(repository *pacv1alpha1.Repository, run *v1alpha1.Run) int {
	if l.of != repository {
		l.of, l.places = repository, map[pacv1alpha1.Slot]int{}
		for i, slot := range slots.Queue(l.open.Of(repository.Namespace, repository.Name), repository.Status.Slots()) {
			l.places[slot] = i + 1
		}
	}
	if place, known := l.places[pacv1alpha1.Slot{Run: run.Name, Event: l.a.Event.Name}]; known {
		return place
	}
	return len(l.places) + 1
}

// wait returns why a run that may be created waits for a slot: a Throttled fault with
// fault.ReasonConcurrencyLimit, or that its Repository is gone, or that it is refused. It is nil if
// there is no limit or the run has its slot: nobody is asked for that unless the cache does not
// have the Repository.
func (l *View) wait(ctx context.Context, run *v1alpha1.Run) error {
	a := l.a
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
	granted, place := repository.Status.Slots(), l.place(repository, run)
	return fault.Throttledf(fault.ReasonConcurrencyLimit, Look, "%s",
		slots.Says(before, slots.Waiting{
			Repository: repository.Namespace + "/" + repository.Name,
			Limit:      limit,
			Place:      place,
			Priority:   slots.Priority(a.Event),
		}, granted))
}

// invalid asks once, before a run waits, whether the API server and its webhooks refuse it as the
// author's text is: an author who is wrong learns that at once, and not when the line is at its
// end. Whatever else that dry run meets is met again at the create. A run that is there already,
// because an earlier create landed, is not refused.
func (l *Line) invalid(ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run) error {
	values, err := a.Kept.Values(ctx)
	if err != nil {
		return err
	}
	manifest, err := a.Kept.Manifest(ctx, run.Name)
	if err != nil {
		return err
	}
	if manifest, err = plans.Reveal(manifest, values); err != nil {
		return err
	}
	runs := l.tekton.PipelineRuns(run.Namespace)
	_, err = runs.Create(ctx, manifest, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil {
		return nil
	}
	refused := fault.FromKube(fault.VerbDryRun, err)
	if refused.Class != fault.Invalid {
		return nil
	}
	if _, err = runs.Get(ctx, run.Name, metav1.GetOptions{}); !fault.Gone(err) {
		return nil
	}
	return plans.Masked(refused, values)
}

// Changed wakes, in their order, the events that wait for a slot when the slots or the limit of
// their Repository have changed: after a change of slots those that have one now, and those whose
// check says another place. Thousands may wait, and each slot that falls free changes the place of
// all of them, but what the checks say of a few. Before and after are what an informer tells:
// before is nil when the Repository was created, or deleted.
func (l *Line) Changed(before, after any, wake func(event string, after time.Duration)) {
	if gone, missed := after.(cache.DeletedFinalStateUnknown); missed {
		after = gone.Obj
	}
	was, _ := before.(*pacv1alpha1.Repository)
	is, ok := after.(*pacv1alpha1.Repository)
	if !ok {
		return
	}
	granted, woken := l.given(was, is), map[string]bool{}
	switch {
	case was == nil || !equality.Semantic.DeepEqual(was.Spec.ConcurrencyLimit, is.Spec.ConcurrencyLimit):
		events := l.open.Of(is.Namespace, is.Name)
		if is.Namespace == l.installation && is.Name == l.global { // it completes all of them
			events, _ = l.open.List(labels.Everything()) // a list of a cache has no error
		}
		granted = append(granted, slots.Queue(events, nil)...)
	case equality.Semantic.DeepEqual(was.Status.Queues, is.Status.Queues):
		return
	default:
		granted = append(granted, moved(l.open.Of(is.Namespace, is.Name), is)...)
	}
	for _, slot := range granted {
		if !woken[slot.Event] {
			woken[slot.Event] = true
			wake(slot.Event, 0)
		}
	}
}

// moved returns those in a Repository's line of which their events have recorded another place, or
// none.
func moved(events []*v1alpha1.GitEvent, repository *pacv1alpha1.Repository) []pacv1alpha1.Slot {
	says := map[pacv1alpha1.Slot]string{}
	for _, event := range events {
		for _, wait := range event.Status.Waits {
			if run, creates := strings.CutPrefix(wait.Step, v1alpha1.StepCreate); creates {
				says[pacv1alpha1.Slot{Run: run, Event: event.Name}] = wait.Message
			}
		}
	}
	var all []pacv1alpha1.Slot
	for i, slot := range slots.Queue(events, repository.Status.Slots()) {
		if !slots.Shows(says[slot], i+1) {
			all = append(all, slot)
		}
	}
	return all
}

// given returns the slots that a Repository did not have before. The process that gave one may know
// of a plan that the cache of this one does not have yet: its event is not in the line then, and
// would look for its slot after Look only.
func (l *Line) given(was, is *pacv1alpha1.Repository) []pacv1alpha1.Slot {
	queue := is.Status.Queue(l.installation)
	if queue == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(queue.Slots), func(slot pacv1alpha1.Slot) bool {
		return was != nil && was.Status.HasSlot(l.installation, slot.Event, slot.Run)
	})
}
