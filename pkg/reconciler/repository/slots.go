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

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/slots"
)

const (
	// slotsLook is how often a Repository is looked at in which runs wait, or have a slot that
	// nothing else may tell of.
	slotsLook = 30 * time.Second
	// inFlight is how long a create may be on its way: a reconcile of an event ends after 50 s, and
	// the API server ends a call after 60 s.
	inFlight = 2 * time.Minute
	// readsFor is how long one attempt reads events and runs of slots. The write of the status has
	// to fit into reconcileTimeout, too.
	readsFor = 10 * time.Second
)

// admit brings the slots of a Repository up to date. It is the only one who gives them, and a run
// is created only when it is seen to have one; the write of the status, which fails if the status
// is not the one that this was computed from, is the lock (docs/adr/0041).
//
// A run keeps its slot until the cluster shows that it is over, or that it can never be created.
// Whoever has no limit has no slots.
//
// What is to be done later is one error for each, because each has a time of its own.
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
		return []error{fault.Throttledf("CacheNotSynced", syncWait, "the open events are not known yet")}
	}
	owner := keyOf(repository)
	events := r.openEvents(owner.Namespace, owner.Name)
	next := &pacv1alpha1.Queue{Installation: r.namespace}
	if queue != nil {
		over := r.turn()
		for _, slot := range queue.Slots {
			taken, err := r.taken(ctx, owner, &slot, looked{events, over})
			if later = append(later, err); taken {
				next.Slots = append(next.Slots, slot)
			}
		}
	}
	next.Slots = append(next.Slots, r.unlisted(events, next.Slots)...)
	line := slots.Queue(events, next.Slots)
	if queue == nil && len(next.Slots)+len(line) == 0 {
		return nil
	}
	repository.Status.SetQueue(r.namespace, next)
	free := max(0, limit-len(repository.Status.Slots()))
	next.Slots = append(next.Slots, line[:min(free, len(line))]...)
	r.stamp(next.Slots)
	next.Queued = len(line) - min(free, len(line))
	repository.Status.SetQueue(r.namespace, next)
	return append(later, look(next, events))
}

// look returns when a queue is looked at again although nothing tells of a change.
func look(queue *pacv1alpha1.Queue, events []*v1alpha1.GitEvent) error {
	for _, slot := range queue.Slots {
		if queue.Queued > 0 || runOf(slot, events) == nil || slot.FreeAt != nil {
			return fault.Throttledf("Queued", slotsLook, "runs wait for a slot, or keep one that nobody tells of")
		}
	}
	return nil
}

// unlisted returns the slots of runs that are there and have none: they were created while there
// was no limit.
func (r *Reconciler) unlisted(events []*v1alpha1.GitEvent, slots []pacv1alpha1.Slot) []pacv1alpha1.Slot {
	known := map[string]bool{}
	for _, slot := range slots {
		known[slot.Run] = true
	}
	var all []pacv1alpha1.Slot
	for _, event := range events {
		for i := range event.Status.Runs {
			run := &event.Status.Runs[i]
			if !known[run.Name] && run.Refused == nil && run.Result == nil && r.created(run) {
				all = append(all, pacv1alpha1.Slot{Run: run.Name, Event: event.Name})
			}
		}
	}
	slices.SortFunc(all, func(a, b pacv1alpha1.Slot) int { return cmp.Compare(a.Run, b.Run) })
	return all
}

// created reports whether a run is there and not over, as far as anybody knows.
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

// looked is where one attempt looks for the runs of slots: in the open events, and until its time
// is over in the API server.
type looked struct {
	events []*v1alpha1.GitEvent
	over   func() error
}

// turn begins the time of an attempt for reads. The slots that are left keep what they have, and
// the next look begins with those that this one has found to be free after a while: so thousands of
// slots whose events are gone are freed little by little, and the others' calls go on.
func (r *Reconciler) turn() (over func() error) {
	end := r.clock.Now().Add(readsFor)
	return func() error {
		if r.clock.Now().Before(end) {
			return nil
		}
		return fault.Throttledf(fault.ReasonBusy, slotsLook, "the other slots are looked at later")
	}
}

// unknown reports whether nothing but the API server knows whether a slot's PipelineRun is there,
// or may be still.
func unknown(run *v1alpha1.Run) bool { return run == nil || run.UID == "" && run.Result != nil }

// taken reports whether the run of a slot keeps it. With an error nothing is known, and it is
// taken.
func (r *Reconciler) taken(
	ctx context.Context,
	owner types.NamespacedName,
	slot *pacv1alpha1.Slot,
	in looked,
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
		return r.mayBeThere(ctx, owner, slot)
	}
	r.unseen.seen(owner, slot.Run)
	slot.FreeAt = nil // a delivery that is sent again may plan the run of a deleted event anew
	return r.holds(run), nil
}

// holds reports whether a run that its event knows is to be created, or is there and not over.
func (r *Reconciler) holds(run *v1alpha1.Run) bool {
	switch {
	case run.UID == "": // what the cache says of one that is not recorded yet waits for that: else it would stand in the line again
		return run.Refused == nil
	case run.Result != nil:
		return false
	}
	cached := r.cachedRun(run.Namespace, run.Name)
	return cached == nil || cached.UID != run.UID || !cached.IsDone()
}

// recorded returns the run of a slot as its event has it, nil if the event is gone. The cache may
// lag: only a live answer says that.
func (r *Reconciler) recorded(
	ctx context.Context,
	slot pacv1alpha1.Slot,
	events []*v1alpha1.GitEvent,
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
			if event.Status.Runs[i].Name == slot.Run {
				return &event.Status.Runs[i]
			}
		}
	}
	return nil
}

// globalSpec is that of the global Repository as the cache has it, nil if there is none.
func (r *Reconciler) globalSpec() *pacv1alpha1.RepositorySpec {
	if global := r.cachedRepository(types.NamespacedName{Namespace: r.namespace, Name: r.global}); global != nil {
		return &global.Spec
	}
	return nil
}

// limited reports whether a Repository has a limit, or slots.
func (r *Reconciler) limited(owner types.NamespacedName) bool {
	repository := r.cachedRepository(owner)
	return repository != nil && (len(repository.Status.Queues) > 0 || repository.Spec.Concurrency(r.globalSpec()) > 0)
}

// sameRuns reports whether the slots of two versions of an event are the same.
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
	return cache.ResourceEventHandlerFuncs{UpdateFunc: func(oldObj, newObj any) {
		before, ok := oldObj.(*pacv1alpha1.Repository)
		after, ok2 := newObj.(*pacv1alpha1.Repository)
		if ok && ok2 && keyOf(after) == w.global && before.Spec.Concurrency(nil) != after.Spec.Concurrency(nil) {
			resync()
		}
	}, AddFunc: func(obj any) { w.globalCame(obj, resync) }, DeleteFunc: func(obj any) { w.globalCame(obj, resync) }}
}

// globalCame calls resync when a global Repository with a limit has come or gone.
func (w watches) globalCame(obj any, resync func()) {
	if global, ok := untombed[*pacv1alpha1.Repository](
		obj,
	); ok && keyOf(global) == w.global &&
		global.Spec.Concurrency(nil) > 0 {
		resync()
	}
}
