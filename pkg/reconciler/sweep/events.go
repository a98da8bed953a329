// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/store/tombstone"
)

// evictBatch is how many events are evicted together. Those of one page of tombstones are
// consecutive and share its write.
const evictBatch = 25

// youngest is the least age of the end of an event before its stub is deleted, however many there
// are. Until then receivers need not read the tombstone of an event that has just happened
// (recentTime there).
const youngest = 30 * time.Minute

// maxSpared is how many expired events stay because the report that they gave up is retried, and
// maxSparedOf how many of one namespace: its users can create thousands of them.
const (
	maxSpared   = 1000
	maxSparedOf = maxSpared / 10
)

// until is when the Git service cannot redeliver an event any more. It counts from the last
// delivery that receivers recorded. A redelivery that is processed again is a delivery of its own
// under the same key, and can be redelivered as long after that.
func (r *Reconciler) until(ctx context.Context, event metav1.Object, again bool) time.Time {
	delivered, now := v1alpha1.LastDelivered(event), r.clock.Now()
	if delivered.After(now) { // by the clock of a receiver, or of the API server
		delivered = now
	}
	retention := config.FromContext(ctx).SettledRetention
	if again {
		retention *= 2
	}
	return delivered.Add(retention)
}

// expire deletes a settled event after its time, and counts it otherwise.
func (r *Reconciler) expire(ctx context.Context, event *metav1.PartialObjectMetadata) error {
	if r.until(ctx, event, false).After(r.clock.Now()) {
		r.ages.add(event.CreationTimestamp.Time)
		r.found.stubs++
		return nil
	}
	return r.skipUnlessTransient(ctx, event.Name, r.deleteOld(ctx, event))
}

// deleteOld leaves a tombstone if the event may run again.
func (r *Reconciler) deleteOld(ctx context.Context, event *metav1.PartialObjectMetadata) error {
	entry, found, err := r.tombstoneOf(ctx, event)
	if err != nil || !found {
		return err
	}
	if page := tombstone.PageOf(entry.Event); page != "" && entry.Until.After(r.clock.Now()) {
		if err := r.writePage(ctx, page, []tombstone.Entry{entry}); err != nil {
			return err
		}
	}
	return r.deleteEvent(ctx, event)
}

func (r *Reconciler) deleteEvent(ctx context.Context, event *metav1.PartialObjectMetadata) error {
	err := r.events.Delete(ctx, event.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &event.UID, ResourceVersion: &event.ResourceVersion}})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fault.FromKube(fault.VerbDelete, fmt.Errorf("deleting GitEvent %s: %w", event.Name, err))
}

// evict deletes the oldest settled events above the cap. It writes a tombstone before it deletes
// the event, so that a redelivery always finds one of them.
func (r *Reconciler) evict(ctx context.Context, events []metav1.PartialObjectMetadata) error {
	oldest, rest := above(&r.ages, events,
		func(e *metav1.PartialObjectMetadata) time.Time { return e.CreationTimestamp.Time })
	entries := map[string][]tombstone.Entry{}
	var buried []metav1.PartialObjectMetadata
	for i := range oldest {
		entry, found, err := r.tombstoneOf(ctx, &oldest[i])
		if err := r.skipUnlessTransient(ctx, oldest[i].Name, err); err != nil {
			return err
		}
		if err != nil || !found {
			continue
		}
		buried = append(buried, oldest[i])
		if page := tombstone.PageOf(entry.Event); page != "" {
			entries[page] = append(entries[page], entry)
		}
	}
	failed, err := r.writeTombstones(ctx, entries)
	if err != nil {
		return err
	}
	for i := range buried {
		if failed[tombstone.PageOf(buried[i].Name)] {
			continue
		}
		if err := r.skipUnlessTransient(ctx, buried[i].Name, r.deleteEvent(ctx, &buried[i])); err != nil {
			return err
		}
		r.found.stubs--
	}
	r.ages.rest = rest
	return nil
}

// spare reports whether an event stays because the report that it gave up is retried: only the
// event records how its checks end. It may have waited for days before it gave up, so its end
// counts, not its delivery. A pass may call spare twice for one event that is both too old and
// above the cap.
func (r *Reconciler) spare(ctx context.Context, event *v1alpha1.GitEvent) bool {
	if !event.Status.Unreported || r.clock.Since(event.SettledTime()) >= config.FromContext(ctx).SettledRetention {
		return false
	}
	if r.found.spared[event.UID] {
		return true
	}
	namespace := event.Spec.Repository.Namespace
	if len(r.found.spared) >= maxSpared || r.found.sparedOf[namespace] >= maxSparedOf {
		return false
	}
	r.found.spared[event.UID] = true
	r.found.sparedOf[namespace]++
	return true
}

// tombstoneOf reads what a tombstone records of an event; found is false if the event is deleted,
// or stays. The event is deleted only in this version: a receiver may record a redelivery
// meanwhile.
func (r *Reconciler) tombstoneOf(
	ctx context.Context, event *metav1.PartialObjectMetadata,
) (entry tombstone.Entry, found bool, err error) {
	live, err := r.events.Get(ctx, event.Name, metav1.GetOptions{})
	if fault.Gone(err) {
		return tombstone.Entry{}, false, nil
	}
	if err != nil {
		return tombstone.Entry{}, false, fault.FromKube(fault.VerbRead,
			fmt.Errorf("reading GitEvent %s: %w", event.Name, err))
	}
	if live.UID != event.UID || !live.Settled() || r.clock.Since(live.SettledTime()) < youngest || r.spare(ctx, live) {
		return tombstone.Entry{}, false, nil
	}
	event.ResourceVersion = live.ResourceVersion // the version that the tombstone records
	return tombstone.Of(live, r.until(ctx, live, live.MayRunAgain())), true, nil
}

// writeTombstones writes the entries to their pages; failed are the pages that could not be
// written.
func (r *Reconciler) writeTombstones(
	ctx context.Context, entries map[string][]tombstone.Entry,
) (failed map[string]bool, err error) {
	failed = map[string]bool{}
	for name, fresh := range entries {
		err := r.writePage(ctx, name, fresh)
		if err := r.skipUnlessTransient(ctx, name, err); err != nil {
			return nil, err
		}
		failed[name] = err != nil // the next pass evicts these
	}
	return failed, nil
}

func (r *Reconciler) writePage(ctx context.Context, name string, fresh []tombstone.Entry) error {
	page, err := r.tombstones.Get(ctx, name, metav1.GetOptions{})
	if err != nil && !fault.Gone(err) {
		return fault.FromKube(fault.VerbRead, fmt.Errorf("reading TombstonePage %s: %w", name, err))
	}
	create := err != nil
	if create {
		page = &v1alpha1.TombstonePage{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name}}
	}
	lost := tombstone.Add(page, fresh, r.clock.Now())
	if create {
		_, err = r.tombstones.Create(ctx, page, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return fault.New(fault.Conflict, reasonTombstonePageExists, err)
		}
	} else {
		_, err = r.tombstones.Update(ctx, page, metav1.UpdateOptions{})
	}
	if err != nil {
		return fault.FromKube(fault.VerbUpdate, fmt.Errorf("writing TombstonePage %s: %w", name, err))
	}
	r.metrics.lost(ctx, lost)
	return nil
}

// pruneTombstones counts the tombstones of a page, and removes expired ones when they are most of
// it.
func (r *Reconciler) pruneTombstones(ctx context.Context, object *metav1.PartialObjectMetadata) error {
	return r.skipUnlessTransient(ctx, object.Name, r.tidyPage(ctx, object.Name))
}

func (r *Reconciler) tidyPage(ctx context.Context, name string) error {
	page, err := r.tombstones.Get(ctx, name, metav1.GetOptions{})
	if fault.Gone(err) {
		return nil
	}
	if err != nil {
		return fault.FromKube(fault.VerbRead, fmt.Errorf("reading TombstonePage %s: %w", name, err))
	}
	living := tombstone.Count(page, r.clock.Now())
	switch {
	case living == 0:
		err = r.tombstones.Delete(ctx, name,
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &page.UID, ResourceVersion: &page.ResourceVersion}})
		if apierrors.IsNotFound(err) {
			err = nil
		}
	case living*2 < len(page.Entries):
		tombstone.Add(page, nil, r.clock.Now())
		_, err = r.tombstones.Update(ctx, page, metav1.UpdateOptions{})
	}
	if err != nil {
		return fault.FromKube(fault.VerbUpdate, fmt.Errorf("tidying up TombstonePage %s: %w", name, err))
	}
	r.found.tombstones += living
	return nil
}
