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

// unlimited is how long after a Repository had no limit its runs are not counted: what a controller
// creates that has not heard of a limit yet, and what was on its way. The API server ends a call
// after a minute (docs/adr/0041).
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

// limit is the one that counts now, 0 for none.
func (l *limited) limit() int {
	if len(l.changes) == 0 {
		return 0
	}
	return l.changes[len(l.changes)-1].limit
}

// highest is the highest limit since a resource version.
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
// version, and none to a run before one that came earlier and waits. A run that is there already
// may get one whatever the limit is: it began when there was none.
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
			h.broke("I-6", nameOf(id), "run %s gets a slot at resource version %d: there are %d, and the limit of Repository %s is %d", id, v.Revision, len(slots), key(v.Namespace, v.Name), limit)
		}
		h.passed(v, id, slots)
	}
}

// passed is first come, first served: whoever gets a slot has waited no shorter than those who
// wait.
func (h *History) passed(v cluster.Version, id string, slots map[string]int64) {
	first := h.waiting[id]
	if first == nil {
		return // it was cancelled meanwhile
	}
	for other, waits := range h.waiting {
		_, has := slots[other]
		if has || waits.cancelled || waits.repository != first.repository || waits.since.IsZero() || v.At.Sub(waits.since) < h.Patience || !waits.before(first) {
			continue
		}
		h.broke("I-6", nameOf(other), "run %s, recorded at %s, gets a slot at resource version %d before %s, recorded at %s, which has waited for %v",
			id, first.received.Format(time.TimeOnly), v.Revision, other, waits.received.Format(time.TimeOnly), v.At.Sub(waits.since).Round(time.Second))
	}
}

// before reports whether a run is to be served before another one: it was recorded in an earlier
// second, or is of the same event and has the lower name. Whose events were recorded in one second
// may be served in either order.
func (q *queued) before(other *queued) bool {
	if q.event == other.event {
		return cmp.Or(cmp.Compare(len(q.pipeline), len(other.pipeline)), cmp.Compare(q.pipeline, other.pipeline)) < 0
	}
	return q.received.Truncate(time.Second).Before(other.received.Truncate(time.Second))
}

// starts judges a run that counts from now on: of its Repository no more run at once than the limit
// is. If it has been lowered, those who had a slot before may still begin.
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
		h.broke("I-6", v.Name, "with PipelineRun %s at resource version %d %d of Repository %s run, and the limit is %d; it has a slot: %v", key(v.Namespace, v.Name), v.Revision, running, run.repository, allowed, has)
	}
}

// Queue is what has not become true yet of I-6: everything that waits for a slot gets one or ends,
// and no slot is lost to a run that is over or was never there.
func (h *History) Queue() (broken []Violation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, waits := range h.waiting {
		broken = append(broken, Violated("I-6", nameOf(id), "run %s of Repository %s is neither there nor over; it waits for a slot: %v", id, waits.repository, !waits.since.IsZero()))
	}
	for repository, l := range h.repositories {
		for id := range l.slots {
			if run := h.runs[id]; run == nil || !run.active {
				broken = append(broken, Violated("I-6", nameOf(id), "run %s keeps a slot of Repository %s, and does not run", id, repository))
			}
		}
	}
	slices.SortFunc(broken, func(a, b Violation) int { return cmp.Compare(a.Message, b.Message) })
	return broken
}

// nameOf is the name of namespace/name.
func nameOf(id string) string { return id[strings.IndexByte(id, '/')+1:] }
