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
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// mayBeThere reports whether a PipelineRun is there, or may arrive still, of which no event knows:
// its event is gone, or has ended the run before anybody saw it. The slot is given a time for that,
// which is for people: each process measures it with its own clock.
func (r *Reconciler) mayBeThere(ctx context.Context, owner types.NamespacedName, slot *pacv1alpha1.Slot) (bool, error) {
	live, err := r.tekton.PipelineRuns(owner.Namespace).Get(ctx, slot.Run, metav1.GetOptions{})
	switch {
	case err == nil:
		return !live.IsDone(), nil
	case !fault.Gone(err):
		return true, fault.FromKube(
			fault.VerbRead,
			fmt.Errorf("reading PipelineRun %s/%s: %w", owner.Namespace, slot.Run, err),
		)
	}
	now := r.clock.Now()
	if slot.FreeAt == nil {
		at := metav1.NewTime(now.Add(inFlight).Truncate(time.Second))
		slot.FreeAt = &at
	}
	return now.Sub(r.unseen.since(owner, slot, now)) < inFlight, nil // what is free is forgotten when that is stored
}

// unseen is since when this process knows of slots that their PipelineRun is not there, and that no
// event will create it. What another process has written down is by another clock, and a create of
// that moment may be on its way still. The zero value knows none. Safe for concurrent use.
type unseen struct {
	mu    sync.Mutex
	times map[types.NamespacedName]map[string]missed
}

type missed struct {
	// since is by this process's clock. freeAt is what the slot said: if it says another time, the
	// run was planned anew meanwhile.
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

// only forgets the runs of a Repository that have no slot any more, as its queue is stored.
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

// seen forgets a run that its event knows of.
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
