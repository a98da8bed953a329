// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/apis"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/runqueue"
	"github.com/plumbline-ci/plumbline/pkg/store/informerhandler"
)

const (
	// slotsEvery is how often a Repository is reconciled in which runs wait, or have a slot whose
	// end causes no event.
	slotsEvery = 30 * time.Second
	// inFlight is how long a create may take: a reconcile of an event ends after 50 s, and the API
	// server ends a call after 60 s.
	inFlight = 2 * time.Minute
	// readsFor is how long one reconcile reads the events and runs of slots. The write of the
	// status has to fit into reconcileTimeout, too.
	readsFor = 10 * time.Second
)

// admit updates the slots of a Repository. It alone gives slots, and a run is created only after it
// has one. The write of the status is the lock: it fails if the status is not the one that the
// slots were computed from (docs/adr/0041).
//
// A run keeps its slot until the cluster shows that it is finished, or that it can never be
// created. A Repository without a limit has no slots.
//
// It returns one error for each step that is to be repeated later, because each has its own time.
func (r *Reconciler) admit(ctx context.Context, repository *pacv1alpha1.Repository) (later []error) {
	limit, queue := repository.Spec.Concurrency(r.globalSpec()), repository.Status.Queue(r.namespace)
	if limit == 0 {
		if queue != nil {
			repository.Status.SetQueue(r.namespace, nil)
			r.unseen.forget(keyOf(repository))
		}
		return nil
	}
	if !r.eventsSynced() {
		return []error{fault.Throttledf(reasonCacheNotSynced, syncWait, "the open events are not known yet")}
	}
	owner := keyOf(repository)
	events := r.openEvents(owner.Namespace, owner.Name)
	next := &pacv1alpha1.Queue{Installation: r.namespace}
	if queue != nil {
		over := r.readBudget()
		for _, slot := range queue.Slots {
			taken, err := r.keepsSlot(ctx, owner, &slot, sources{events, over})
			if later = append(later, err); taken {
				next.Slots = append(next.Slots, slot)
			}
		}
	}
	next.Slots = append(next.Slots, r.unlisted(events, next.Slots)...)
	waiting := runqueue.Queue(events, next.Slots)
	if queue == nil && len(next.Slots)+len(waiting) == 0 {
		return nil
	}
	repository.Status.SetQueue(r.namespace, next)
	given := min(len(waiting), max(0, limit-len(repository.Status.Slots())))
	next.Slots = append(next.Slots, waiting[:given]...)
	r.setTimes(next.Slots)
	next.Queued = len(waiting) - given
	repository.Status.SetQueue(r.namespace, next)
	return append(later, recheck(next, events))
}

// recheck returns when a queue is reconciled again although no change wakes the key.
func recheck(queue *pacv1alpha1.Queue, events []*v1alpha1.GitEvent) error {
	for _, slot := range queue.Slots {
		if queue.Queued > 0 || runOf(slot, events) == nil || slot.FreeAt != nil {
			return fault.Throttledf(reasonQueued, slotsEvery, "runs wait for a slot, or keep one whose end causes no event")
		}
	}
	return nil
}

// unlisted returns slots for running runs that have none: they were created while there was no
// limit.
func (r *Reconciler) unlisted(events []*v1alpha1.GitEvent, slots []pacv1alpha1.Slot) []pacv1alpha1.Slot {
	known := map[string]bool{}
	for _, slot := range slots {
		known[slot.Run] = true
	}
	var all []pacv1alpha1.Slot
	for _, event := range events {
		for i := range event.Status.Runs {
			run := &event.Status.Runs[i]
			if !known[run.Key()] && run.Refused == nil && run.Result == nil && r.created(run) {
				all = append(all, pacv1alpha1.Slot{Run: run.Key(), Event: event.Name})
			}
		}
	}
	slices.SortFunc(all, func(a, b pacv1alpha1.Slot) int { return cmp.Compare(a.Run, b.Run) })
	return all
}

// created reports whether a run exists and is not finished, as far as the cache and its event show.
func (r *Reconciler) created(run *v1alpha1.Run) bool {
	if cached := r.cachedRun(run.Namespace, run.Name); cached != nil {
		return !cached.IsDone()
	}
	return run.UID != ""
}

func (r *Reconciler) cachedRun(namespace, name string) *pipelinev1.PipelineRun {
	obj, exists, err := r.runs.GetByKey(namespace + "/" + name)
	if err != nil || !exists {
		return nil
	}
	run, _ := obj.(*pipelinev1.PipelineRun)
	return run
}

// sources are where one reconcile finds the runs of slots: in the open events, and in the API
// server until the time for reads has passed.
type sources struct {
	events []*v1alpha1.GitEvent
	over   func() error
}

// readBudget starts the time for reads. When it has passed, the remaining slots stay. The next
// reconcile begins with the slots whose events were found to be deleted, so thousands of such slots
// are released little by little.
func (r *Reconciler) readBudget() (over func() error) {
	end := r.clock.Now().Add(readsFor)
	return func() error {
		if r.clock.Now().Before(end) {
			return nil
		}
		return fault.Throttledf(fault.ReasonBusy, slotsEvery, "the other slots are read later")
	}
}

// unknown reports whether only the API server can show that the PipelineRun of a slot exists.
func unknown(run *v1alpha1.Run) bool { return run == nil || run.UID == "" && run.Result != nil }

// keepsSlot reports whether a run keeps its slot. If that is unknown because of an error, it does.
func (r *Reconciler) keepsSlot(
	ctx context.Context, owner types.NamespacedName, slot *pacv1alpha1.Slot, in sources,
) (bool, error) {
	if unknown(runOf(*slot, in.events)) {
		if err := in.over(); err != nil {
			return true, err
		}
	}
	run, err := r.recorded(ctx, *slot, in.events)
	if err != nil {
		return true, err
	}
	if unknown(run) {
		return r.mayExist(ctx, owner, slot)
	}
	r.unseen.seen(owner, slot.Run)
	slot.FreeAt = nil // a redelivery may plan the run of a deleted event again
	return r.recordedKeepsSlot(run), nil
}

// recordedKeepsSlot reports whether a run that its event records is to be created, or exists and is
// not finished. A slot belongs to all attempts of a run.
func (r *Reconciler) recordedKeepsSlot(run *v1alpha1.Run) bool {
	switch {
	case run.UID == "":
		// A finished run in the cache may not be recorded yet. Without its slot it would wait
		// again.
		return run.Refused == nil
	case run.Result != nil:
		return false
	}
	cached := r.cachedRun(run.Namespace, run.Name)
	return cached == nil || cached.UID != run.UID || !cached.IsDone() || mayRetry(run, cached)
}

// mayRetry reports whether the event of a finished run may be about to replace it with another
// attempt, which then needs the slot.
func mayRetry(run *v1alpha1.Run, finished *pipelinev1.PipelineRun) bool {
	return run.Retries() && finished.Status.GetCondition(apis.ConditionSucceeded).IsFalse()
}

// recorded returns the run of a slot from its event; nil if the event is deleted. The cache may be
// behind, so only the API server shows that.
func (r *Reconciler) recorded(
	ctx context.Context, slot pacv1alpha1.Slot, events []*v1alpha1.GitEvent,
) (*v1alpha1.Run, error) {
	if run := runOf(slot, events); run != nil {
		return run, nil
	}
	event, err := r.client.PlumblineV1alpha1().GitEvents(r.namespace).Get(ctx, slot.Event, metav1.GetOptions{})
	if fault.Gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.FromKube(fault.VerbRead, fmt.Errorf("reading GitEvent %s: %w", slot.Event, err))
	}
	return runOf(slot, []*v1alpha1.GitEvent{event}), nil
}

func runOf(slot pacv1alpha1.Slot, events []*v1alpha1.GitEvent) *v1alpha1.Run {
	for _, event := range events {
		if event.Name != slot.Event {
			continue
		}
		for i := range event.Status.Runs {
			if event.Status.Runs[i].Key() == slot.Run {
				return &event.Status.Runs[i]
			}
		}
	}
	return nil
}

// globalSpec returns the spec of the global Repository from the cache; nil if there is none.
func (r *Reconciler) globalSpec() *pacv1alpha1.RepositorySpec {
	if global := r.cachedRepository(types.NamespacedName{Namespace: r.namespace, Name: r.global}); global != nil {
		return &global.Spec
	}
	return nil
}

// limited reports whether a Repository has a limit or slots.
func (r *Reconciler) limited(owner types.NamespacedName) bool {
	repository := r.cachedRepository(owner)
	return repository != nil && (len(repository.Status.Queues) > 0 || repository.Spec.Concurrency(r.globalSpec()) > 0)
}

// sameRuns reports whether two versions of an event need the same slots.
func sameRuns(before, after *v1alpha1.GitEvent) bool {
	if before == nil || after == nil {
		return false
	}
	return slices.EqualFunc(before.Status.Runs, after.Status.Runs, func(a, b v1alpha1.Run) bool {
		same := (a.Refused == nil) == (b.Refused == nil) && (a.Result == nil) == (b.Result == nil)
		return same && a.Name == b.Name && a.UID == b.UID && a.Unresolved == b.Unresolved
	})
}

// globalChanged calls resync when the limit of the global Repository has changed.
func (w watches) globalChanged(resync func()) cache.ResourceEventHandler {
	limit := func(r *pacv1alpha1.Repository) int {
		if r == nil || keyOf(r) != w.global {
			return 0
		}
		return r.Spec.Concurrency(nil)
	}
	return informerhandler.ForPairs(func(before, after *pacv1alpha1.Repository) {
		if limit(before) != limit(after) {
			resync()
		}
	})
}
