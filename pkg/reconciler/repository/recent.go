// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

const (
	// recentInterval is the time between two writes of status.recent alone, however many events
	// there are. Other writes of the status include it.
	recentInterval = 5 * time.Second
	// maxRecentText bounds the texts of an entry, in bytes.
	maxRecentText = 256
	// recentDelay is how long the list waits for more changes. Most events need one write then.
	recentDelay = time.Second

	reasonRecent = "RecentWritten"
)

// recents are the events that have settled since status.recent was written, and when that was. They
// are lost with the process: then the list lacks an event that settled just before. The zero value
// is empty.
type recents struct {
	mu      sync.Mutex
	settled map[types.NamespacedName][]string
	written map[types.NamespacedName]time.Time
}

// settle notes that an event is no longer in the cache.
func (n *recents) settle(owner types.NamespacedName, event string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.settled == nil {
		n.settled = map[types.NamespacedName][]string{}
	}
	names := append(n.settled[owner], event)
	n.settled[owner] = names[max(0, len(names)-pacv1alpha1.MaxRecent):]
}

// names returns the noted events.
func (n *recents) names(owner types.NamespacedName) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.settled[owner])
}

// write notes that the list was written.
func (n *recents) write(owner types.NamespacedName, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.written == nil {
		n.written = map[types.NamespacedName]time.Time{}
	}
	n.written[owner] = now
}

// drop forgets noted events, because the list has them.
func (n *recents) drop(owner types.NamespacedName, names []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	left := slices.DeleteFunc(n.settled[owner], func(name string) bool { return slices.Contains(names, name) })
	if len(left) == 0 {
		delete(n.settled, owner)
		return
	}
	n.settled[owner] = left
}

// left returns how long the next write of status.recent alone waits.
func (n *recents) left(owner types.NamespacedName, now time.Time) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.written[owner].Add(recentInterval).Sub(now)
}

func (n *recents) forget(owner types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.settled, owner)
	delete(n.written, owner)
}

// markRecent updates the list of the last events. Unsettled events are in the cache. An event that
// is not, and whose result is not in the list, is read once. settled are the events that were noted
// and are in the list now, or need not be.
func (r *Reconciler) markRecent(ctx context.Context, repository *pacv1alpha1.Repository) (settled []string, err error) {
	if !r.eventsSynced() {
		return nil, nil // markCredentials returns that error
	}
	left := r.recents.left(keyOf(repository), r.clock.Now())
	all, missing := r.fromCache(repository)
	settled = r.recents.names(keyOf(repository))
	missing = slices.Compact(slices.Sorted(slices.Values(append(missing, settled...))))
	if len(missing) > 0 && left > 0 {
		repository.Status.Recent = pacv1alpha1.Newest(all)
		return nil, fault.Throttledf(reasonRecent, left, "results of events are read then")
	}
	for _, name := range missing {
		var entry *pacv1alpha1.RecentEvent
		if entry, err = r.settledEvent(ctx, repository, name); err != nil {
			break
		}
		if entry != nil {
			all = append(all, *entry)
		}
	}
	repository.Status.Recent = pacv1alpha1.Newest(all)
	if err != nil {
		return nil, err
	}
	return settled, nil
}

// fromCache returns the entries of the list and of the events in the cache, and the names of events
// that have no result in the list and are not in the cache.
func (r *Reconciler) fromCache(repository *pacv1alpha1.Repository) (all []pacv1alpha1.RecentEvent, missing []string) {
	open := map[string]bool{}
	all = slices.Clone(repository.Status.Recent)
	for _, event := range r.openEvents(repository.Namespace, repository.Name) {
		open[event.Name] = true
		if started(event) {
			all = append(all, recentEvent(event))
		}
	}
	for _, entry := range repository.Status.Recent {
		if entry.FinishedAt == nil && !open[entry.Event] {
			missing = append(missing, entry.Event)
		}
	}
	return all, missing
}

// onlyRecent returns after how long a status may be written that differs in the list alone, 0 if it
// may be written now.
func (r *Reconciler) onlyRecent(
	repository *pacv1alpha1.Repository, before *pacv1alpha1.RepositoryStatus,
) time.Duration {
	other := before.DeepCopy()
	other.Recent = repository.Status.Recent
	if !equality.Semantic.DeepEqual(other, &repository.Status) {
		return 0
	}
	return max(0, r.recents.left(keyOf(repository), r.clock.Now()))
}

// settledEvent returns the entry of an event that is not in the cache; nil for one that the list
// does not need.
func (r *Reconciler) settledEvent(
	ctx context.Context, repository *pacv1alpha1.Repository, name string,
) (*pacv1alpha1.RecentEvent, error) {
	event, err := r.client.PlumblineV1alpha1().GitEvents(r.namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case fault.Gone(err): // deleted, or another installation's: its last known outcome stays
		at := slices.IndexFunc(repository.Status.Recent, func(e pacv1alpha1.RecentEvent) bool { return e.Event == name })
		if at < 0 {
			return nil, nil
		}
		entry, now := repository.Status.Recent[at], metav1.NewTime(r.clock.Now().Truncate(time.Second))
		entry.FinishedAt = &now
		return &entry, nil
	case err != nil:
		return nil, fmt.Errorf("reading GitEvent %s: %w", name, fault.FromKube(fault.VerbRead, err))
	case !started(event):
		return nil, nil
	}
	entry := recentEvent(event)
	return &entry, nil
}

// started reports whether an event is in the list. Comments that have started nothing are not: an
// untrusted user can write thousands of them.
func started(event *v1alpha1.GitEvent) bool {
	return event.Spec.Comment == nil || len(event.Status.Runs) > 0
}

// recentEvent returns the entry of an event, which may be a trimmed one.
func recentEvent(event *v1alpha1.GitEvent) pacv1alpha1.RecentEvent {
	entry := pacv1alpha1.RecentEvent{
		Event:   event.Name,
		Commit:  event.Spec.SHA,
		Ref:     short(event.Status.Ref),
		Trigger: string(event.Spec.Trigger),
		Outcome: short(event.Status.Outcome),
		Time:    metav1.NewTime(event.RecordedAt().Truncate(time.Second)),
	}
	if plan := event.Status.Plan; plan != nil {
		entry.Commit, entry.Reason = plan.HeadSHA, plan.Reason
		if event.Settled() {
			entry.Message = short(plan.Message)
		}
	}
	for i := range event.Status.Runs {
		if name := newestOf(&event.Status.Runs[i]); name != "" && len(entry.Runs) < pacv1alpha1.MaxRecentRuns {
			entry.Runs = append(entry.Runs, name)
		}
	}
	if event.Settled() {
		at := metav1.NewTime(event.SettledTime().Truncate(time.Second))
		entry.FinishedAt = &at
	}
	return entry
}

// newestOf returns the name of the newest PipelineRun of a run, "" if it never had one.
func newestOf(run *v1alpha1.Run) string {
	switch n := len(run.Attempts); {
	case run.UID != "":
		return run.Name
	case n > 0: // the next attempt is not created yet
		return run.Attempts[n-1].Name
	}
	return ""
}

func short(words string) string { return text.Shorten(words, maxRecentText, text.Bytes) }

// recentChanged wakes a Repository a moment after the entry of one of its events has changed.
func (r *Reconciler) recentChanged(before, after *v1alpha1.GitEvent) {
	event := after
	if event == nil {
		event = before
	}
	owner := types.NamespacedName{Namespace: event.Spec.Repository.Namespace, Name: event.Spec.Repository.Name}
	if !started(event) || sameRecent(before, after) || !r.IsLeaderFor(owner) {
		return
	}
	if after == nil {
		r.recents.settle(owner, event.Name)
	}
	r.wake(owner, recentDelay)
}

// sameRecent reports whether a change of a trimmed event does not change its entry.
func sameRecent(before, after *v1alpha1.GitEvent) bool {
	return before != nil && after != nil && equality.Semantic.DeepEqual(recentEvent(before), recentEvent(after))
}
