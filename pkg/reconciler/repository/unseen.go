// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
)

// mayExist reports whether a PipelineRun that no event records exists, or may still be created. Its
// event is deleted, or has ended the run before it was seen. The time in the slot is for users:
// each process measures the wait with its own clock.
func (r *Reconciler) mayExist(ctx context.Context, owner types.NamespacedName, slot *pacv1alpha1.Slot) (bool, error) {
	live, err := r.tekton.PipelineRuns(owner.Namespace).Get(ctx, slot.Run, metav1.GetOptions{})
	switch {
	case err == nil && live.IsDone():
		return r.laterRuns(ctx, owner, slot.Run)
	case err == nil:
		return true, nil
	case !fault.Gone(err):
		return true, fault.FromKube(fault.VerbRead,
			fmt.Errorf("reading PipelineRun %s/%s: %w", owner.Namespace, slot.Run, err))
	}
	now := r.clock.Now()
	if slot.FreeAt == nil {
		at := metav1.NewTime(now.Add(inFlight).Truncate(time.Second))
		slot.FreeAt = &at
	}
	return now.Sub(r.unseen.since(owner, slot, now)) < inFlight, nil // a free slot is forgotten when the status is stored
}

// laterRuns reports whether a run whose event is deleted has a later attempt that is not finished.
func (r *Reconciler) laterRuns(ctx context.Context, owner types.NamespacedName, first string) (bool, error) {
	for n := 2; n <= 1+v1alpha1.MaxInfrastructureRetries; n++ {
		live, err := r.tekton.PipelineRuns(owner.Namespace).Get(ctx, resources.AttemptName(first, n), metav1.GetOptions{})
		switch {
		case fault.Gone(err):
			return false, nil
		case err != nil:
			return true, fault.FromKube(fault.VerbRead,
				fmt.Errorf("reading attempt %d of PipelineRun %s/%s: %w", n, owner.Namespace, first, err))
		case !live.IsDone():
			return true, nil
		}
	}
	return false, nil
}

// unseen records since when this process knows that the PipelineRun of a slot does not exist, and
// that no event will create it. The time in the status is by the clock of another process, whose
// create may still be running. The zero value is empty. Safe for concurrent use.
type unseen struct {
	mu    sync.Mutex
	times map[types.NamespacedName]map[string]missed
}

type missed struct {
	// since is by this process's clock, and freeAt is the time in the slot. If that changes, the
	// run was planned again meanwhile.
	since, freeAt time.Time
}

// since returns when that was seen first.
func (u *unseen) since(owner types.NamespacedName, slot *pacv1alpha1.Slot, now time.Time) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	if known, found := u.times[owner][slot.Run]; found && known.freeAt.Equal(slot.FreeAt.Time) {
		return known.since
	}
	if u.times == nil {
		u.times = map[types.NamespacedName]map[string]missed{}
	}
	if u.times[owner] == nil {
		u.times[owner] = map[string]missed{}
	}
	u.times[owner][slot.Run] = missed{now, slot.FreeAt.Time}
	return now
}

// only forgets the runs that have no slot any more in the stored queue.
func (u *unseen) only(owner types.NamespacedName, queue *pacv1alpha1.Queue) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.times[owner]) == 0 {
		return
	}
	kept := map[string]missed{}
	if queue != nil {
		for _, slot := range queue.Slots {
			if known, found := u.times[owner][slot.Run]; found {
				kept[slot.Run] = known
			}
		}
	}
	if u.times[owner] = kept; len(kept) == 0 {
		delete(u.times, owner)
	}
}

// seen forgets a run that its event records.
func (u *unseen) seen(owner types.NamespacedName, run string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if delete(u.times[owner], run); len(u.times[owner]) == 0 {
		delete(u.times, owner)
	}
}

func (u *unseen) forget(owner types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.times, owner)
}
