// SPDX-License-Identifier: Apache-2.0

// Package slotwait lets a run wait for a slot if its Repository has a concurrency_limit. The
// repository reconciler alone assigns slots, in the status of the Repository. This package is the
// event's part.
package slotwait

import (
	"context"
	"slices"
	"strings"
	"time"

	tektonv1 "github.com/tektoncd/pipeline/pkg/client/clientset/versioned/typed/pipeline/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	paclisters "github.com/plumbline-ci/plumbline/pkg/client/listers/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/runqueue"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/deps"
	"github.com/plumbline-ci/plumbline/pkg/store/informerhandler"
	"github.com/plumbline-ci/plumbline/pkg/store/plans"
)

// PollInterval is how often a waiting run checks for its slot although nothing has reported a
// change.
const PollInterval = 5 * time.Minute

// Waiters says which runs of an installation's events have a slot. It reads caches; only a run that
// is about to wait costs a call, a dry run.
type Waiters struct {
	// installation is Plumbline's namespace, and global the name of the global Repository there, ""
	// if there is none.
	installation, global string
	repositories         paclisters.RepositoryLister
	open                 deps.Open
	tekton               tektonv1.PipelineRunsGetter
}

// New returns the Waiters of an installation.
func New(c deps.Cluster, o deps.Options) *Waiters {
	return &Waiters{
		installation: o.Namespace,
		global:       o.GlobalRepository,
		repositories: c.Repositories,
		open:         c.Open,
		tekton:       c.Tekton,
	}
}

// limit returns how many runs of a Repository run at once, 0 for no limit.
func (w *Waiters) limit(repository *pacv1alpha1.Repository) int {
	var global *pacv1alpha1.RepositorySpec
	if found, err := w.repositories.Repositories(w.installation).
		Get(w.global); err == nil { // no other error than that it is not there
		global = &found.Spec
	}
	return repository.Spec.Concurrency(global)
}

// Waiter is the queue of a Repository as one attempt sees it. The queue is sorted once for all runs
// of the event, because thousands may wait.
type Waiter struct {
	*Waiters
	a *attempt.Attempt
	// of is the version of the Repository that the positions are of.
	of        *pacv1alpha1.Repository
	positions map[pacv1alpha1.Slot]int
}

// Of returns the Waiter of an attempt.
func (w *Waiters) Of(a *attempt.Attempt) *Waiter { return &Waiter{Waiters: w, a: a} }

// IfDue calls do if a run is due and has a slot or needs none. A cancelled run waits for nothing:
// do finds out whether its PipelineRun exists.
func (w *Waiter) IfDue(ctx context.Context, run *v1alpha1.Run, do func() error) error {
	if w.a.Event.Cancelled(run.Pipeline) != nil {
		return do()
	}
	if err := w.wait(ctx, run); err != nil {
		return err
	}
	return w.a.Waits.IfDue(v1alpha1.StepCreate+run.Name, do)
}

// Order returns the PipelineRuns of the event in the order in which they get slots, as
// "namespace/name" separated by commas; "" if there is no limit.
func (w *Waiter) Order(ctx context.Context) string {
	repository, err := w.a.Git.Repository(ctx)
	if repository == nil || err != nil || w.limit(repository) == 0 {
		return ""
	}
	var names []string
	for _, run := range runqueue.Sorted(w.a.Event.Status.Runs) {
		if run.Refused == nil && !run.Skipped() && !run.Unresolved {
			names = append(names, run.Namespace+"/"+run.Name)
		}
	}
	return strings.Join(names, ",")
}

// position returns the position of a run, from 1 on. A run that the cache does not have yet comes
// after all others.
func (w *Waiter) position(repository *pacv1alpha1.Repository, run *v1alpha1.Run) int {
	if w.of != repository {
		w.of, w.positions = repository, map[pacv1alpha1.Slot]int{}
		for i, slot := range runqueue.Queue(w.open.Of(repository.Namespace, repository.Name), repository.Status.Slots()) {
			w.positions[slot] = i + 1
		}
	}
	if place, known := w.positions[pacv1alpha1.Slot{Run: run.Key(), Event: w.a.Event.Name}]; known {
		return place
	}
	return len(w.positions) + 1
}

// wait returns why a run that may be created waits for a slot: a Throttled fault with
// fault.ReasonConcurrencyLimit, or that its Repository is gone, or that the run is refused. It
// returns nil if there is no limit or the run has its slot. That needs no call, unless the cache
// does not have the Repository.
func (w *Waiter) wait(ctx context.Context, run *v1alpha1.Run) error {
	a := w.a
	repository, err := a.Git.Repository(ctx)
	if err != nil {
		return err
	}
	wait := a.Waits.Of(v1alpha1.StepCreate + run.Name)
	waited := wait != nil && wait.Reason == fault.ReasonConcurrencyLimit
	if repository == nil {
		if !waited {
			return nil // its creation finds out what that means
		}
		ref := a.Event.Spec.Repository
		return fault.Operatorf(credentials.ReasonRepositoryGone, "Repository %s/%s is gone", ref.Namespace, ref.Name)
	}
	limit := w.limit(repository)
	if limit == 0 || repository.Status.HasSlot(w.installation, a.Event.Name, run.Key()) {
		return nil
	}
	before := ""
	if waited {
		before = wait.Message
	} else if err := w.invalid(ctx, a, run); err != nil {
		return err
	}
	granted, place := repository.Status.Slots(), w.position(repository, run)
	return fault.Throttledf(fault.ReasonConcurrencyLimit, PollInterval, "%s",
		runqueue.Says(before, runqueue.Waiting{
			Repository: repository.Namespace + "/" + repository.Name,
			Limit:      limit,
			Place:      place,
			Priority:   runqueue.Priority(a.Event),
		}, granted))
}

// invalid checks once, before a run waits, whether the API server and its webhooks refuse what the
// author wrote. So the author learns about a mistake at once, and not when the run gets its slot.
// Its creation meets every other problem of that dry run again. A run that exists, because an
// earlier creation succeeded, is not refused.
func (w *Waiters) invalid(ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run) error {
	values, err := a.StoredPlan.Values(ctx)
	if err != nil {
		return err
	}
	manifest, err := a.Manifest(ctx, run)
	if err != nil {
		return err
	}
	if manifest, err = plans.Reveal(manifest, values); err != nil {
		return err
	}
	runs := w.tekton.PipelineRuns(run.Namespace)
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

// Changed wakes the events that wait for a slot, in order, when the slots or the limit of their
// Repository have changed. After a change of slots it wakes the runs that have one now, and those
// whose check shows another position. Thousands may wait, and each free slot changes the positions
// of all, but few checks show them. before and after come from an informer; before is nil if the
// Repository was created or deleted.
func (w *Waiters) Changed(before, after any, wake func(event string, after time.Duration)) {
	was, _ := before.(*pacv1alpha1.Repository)
	is, ok := informerhandler.Object[*pacv1alpha1.Repository](after)
	if !ok {
		return
	}
	granted, woken := w.given(was, is), map[string]bool{}
	switch {
	case was == nil || !equality.Semantic.DeepEqual(was.Spec.ConcurrencyLimit, is.Spec.ConcurrencyLimit):
		events := w.open.Of(is.Namespace, is.Name)
		if is.Namespace == w.installation && is.Name == w.global { // its settings complete those of all Repositories
			events, _ = w.open.List(labels.Everything()) // a list of a cache has no error
		}
		granted = append(granted, runqueue.Queue(events, nil)...)
	case equality.Semantic.DeepEqual(was.Status.Queues, is.Status.Queues):
		return
	default:
		granted = append(granted, moved(w.open.Of(is.Namespace, is.Name), is)...)
	}
	for _, slot := range granted {
		if !woken[slot.Event] {
			woken[slot.Event] = true
			wake(slot.Event, 0)
		}
	}
}

// moved returns the runs in a Repository's queue whose events have recorded another position, or
// none.
func moved(events []*v1alpha1.GitEvent, repository *pacv1alpha1.Repository) []pacv1alpha1.Slot {
	says := map[pacv1alpha1.Slot]string{}
	for _, event := range events {
		keys := map[string]string{}
		for i := range event.Status.Runs {
			keys[v1alpha1.StepCreate+event.Status.Runs[i].Name] = event.Status.Runs[i].Key()
		}
		for _, wait := range event.Status.Waits {
			if run, creates := keys[wait.Step]; creates {
				says[pacv1alpha1.Slot{Run: run, Event: event.Name}] = wait.Message
			}
		}
	}
	var all []pacv1alpha1.Slot
	for i, slot := range runqueue.Queue(events, repository.Status.Slots()) {
		if !runqueue.Shows(says[slot], i+1) {
			all = append(all, slot)
		}
	}
	return all
}

// given returns the slots that a Repository has now and did not have before. Their events are woken
// even if they are not in the queue: this process's cache may be older than the plan by which
// another process assigned the slot. Otherwise they would find their slot after PollInterval.
func (w *Waiters) given(was, is *pacv1alpha1.Repository) []pacv1alpha1.Slot {
	queue := is.Status.Queue(w.installation)
	if queue == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(queue.Slots), func(slot pacv1alpha1.Slot) bool {
		return was != nil && was.Status.HasSlot(w.installation, slot.Event, slot.Run)
	})
}
