// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"cmp"
	"slices"
	"strings"
	"time"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/cluster"
)

// unlimited is how long the runs of a Repository are not counted after it had no limit: a
// controller may not have seen the limit yet, and calls may be in flight. The API server ends a
// call after a minute (docs/adr/0041).
const unlimited = time.Minute

// limited is a Repository with its slots.
type limited struct {
	// changes are the limits that it ever had, the last one last; 0 is none.
	changes []change
	slots   map[string]int64 // since which resource version a run has one
	// free is when it last had no limit.
	free time.Time
}

type change struct {
	revision int64
	limit    int
}

// limit returns the current one, 0 for none.
func (l *limited) limit() int {
	if len(l.changes) == 0 {
		return 0
	}
	return l.changes[len(l.changes)-1].limit
}

// highest returns the highest limit since a resource version.
func (l *limited) highest(since int64) int {
	highest := l.limit()
	for i, c := range l.changes {
		ended := i+1 < len(l.changes) && l.changes[i+1].revision <= since
		if !ended {
			highest = max(highest, c.limit)
		}
	}
	return highest
}

// gives judges the slots of a version of a Repository: none is given beyond the limit of this
// version, and none to a run before an earlier one that waits. A run that exists already may get
// one whatever the limit is: it started without a limit.
func (h *History) gives(v cluster.Version, l *limited, now *pacv1alpha1.Repository) {
	limit := now.Spec.Concurrency(nil)
	if len(l.changes) == 0 || l.limit() != limit {
		if len(l.changes) > 0 && l.limit() == 0 {
			l.free = v.At
		}
		l.changes = append(l.changes, change{v.Revision, limit})
	}
	slots, given := map[string]int64{}, []string{}
	queue := now.Status.Queue(h.Installation)
	if queue == nil {
		queue = &pacv1alpha1.Queue{}
	}
	for _, slot := range queue.Slots {
		id := key(v.Namespace, slot.Run)
		since, had := l.slots[id]
		if !had {
			since = v.Revision
			if h.runs[id] == nil {
				given = append(given, id)
			}
		}
		slots[id] = since
	}
	l.slots, h.given = slots, h.given+len(given)
	for _, id := range given {
		if limit > 0 && len(slots) > limit {
			h.broke("I-6", nameOf(id),
				"run %s gets a slot at resource version %d: there are %d, and the limit of Repository %s is %d", id, v.Revision,
				len(slots), key(v.Namespace, v.Name), limit)
		}
		h.passed(v, id, slots)
	}
}

// passed judges the order: a run that gets a slot has waited at least as long as those that wait.
func (h *History) passed(v cluster.Version, id string, slots map[string]int64) {
	first := h.waiting[id]
	if first == nil {
		return // it was cancelled meanwhile
	}
	for other, waits := range h.waiting {
		_, has := slots[other]
		if has || waits.cancelled || waits.repository != first.repository || waits.since.IsZero() ||
			v.At.Sub(waits.since) < h.Patience || !waits.before(first) {
			continue
		}
		h.broke("I-6", nameOf(other),
			"run %s, recorded at %s, gets a slot at resource version %d before %s, recorded at %s, which has waited for %v",
			id, first.received.Format(time.TimeOnly), v.Revision, other, waits.received.Format(time.TimeOnly),
			v.At.Sub(waits.since).Round(time.Second))
	}
}

// before reports whether a run must get a slot before another one: it was recorded in an earlier
// second, or is of the same event and has the lower name. Events of the same second may be served
// in either order.
func (q *queued) before(other *queued) bool {
	if q.event == other.event {
		return cmp.Or(cmp.Compare(len(q.pipeline), len(other.pipeline)), cmp.Compare(q.pipeline, other.pipeline)) < 0
	}
	return q.received.Truncate(time.Second).Before(other.received.Truncate(time.Second))
}

// starts judges a run that counts from now on: no more runs of its Repository than the limit go on
// at the same time. If the limit has been lowered, runs that had a slot before may still start.
func (h *History) starts(v cluster.Version, run *made) {
	l := h.repositories[run.repository]
	if l == nil || l.limit() == 0 || v.At.Sub(l.free) < unlimited {
		return
	}
	running := 0
	for _, other := range h.runs {
		if other.active && other.repository == run.repository {
			running++
		}
	}
	h.most = max(h.most, running)
	allowed := l.limit()
	since, has := l.slots[key(v.Namespace, v.Name)]
	if has {
		allowed = l.highest(since)
	}
	if running > allowed {
		h.broke("I-6", v.Name,
			"with PipelineRun %s at resource version %d %d of Repository %s run, and the limit is %d; it has a slot: %v",
			key(v.Namespace, v.Name), v.Revision, running, run.repository, allowed, has)
	}
}

// Queue returns what I-6 still misses: every run that waits for a slot gets one or ends, and no
// slot is lost to a run that is finished or was never created.
func (h *History) Queue() (broken []Violation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, waits := range h.waiting {
		broken = append(broken, Violated("I-6", nameOf(id),
			"run %s of Repository %s is neither there nor over; it waits for a slot: %v", id, waits.repository,
			!waits.since.IsZero()))
	}
	for repository, l := range h.repositories {
		for id := range l.slots {
			if run := h.runs[id]; run == nil || !run.active {
				broken = append(broken, Violated("I-6", nameOf(id), "run %s keeps a slot of Repository %s, and does not run", id,
					repository))
			}
		}
	}
	slices.SortFunc(broken, func(a, b Violation) int { return cmp.Compare(a.Message, b.Message) })
	return broken
}

// nameOf returns the name of namespace/name.
func nameOf(id string) string { return id[strings.IndexByte(id, '/')+1:] }
