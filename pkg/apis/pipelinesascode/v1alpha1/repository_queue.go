// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxConcurrency is the most runs of a Repository with a limit that run at once: the names of all
// of them are in its status.
const MaxConcurrency = 1000

// Queue is what one installation runs of a Repository with a concurrency_limit.
type Queue struct {
	// Installation is its namespace.
	Installation string `json:"installation"`
	// Queued is how many of its runs wait for a slot.
	Queued int `json:"queued"`
	// Slots are the runs that may be created or are there. A run has its slot until it has ended,
	// or can never be created.
	// +optional
	// +listType=map
	// +listMapKey=run
	Slots []Slot `json:"slots,omitempty"`
}

// Slot is the permission of one run to be created.
type Slot struct {
	// Run is the name of the PipelineRun.
	Run string `json:"run"`
	// Event is the name of its GitEvent.
	Event string `json:"event"`
	// Since is when the slot was given, or its run was found to be there without one. Unset in an
	// older object.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// FreeAt is when the slot of a run is free that ended before anybody saw its PipelineRun: a
	// create that is on its way may still arrive until then. Unset as long as that is not so.
	// +optional
	FreeAt *metav1.Time `json:"freeAt,omitempty"`
}

// Concurrency is how many runs of a Repository with this spec run at once, 0 for no limit. What it
// does not set is that of the global Repository, nil if there is none. The schema refuses limits
// below 1; in an object that is older than the schema they are none.
func (s *RepositorySpec) Concurrency(global *RepositorySpec) int {
	limit := s.ConcurrencyLimit
	if limit == nil && global != nil {
		limit = global.ConcurrencyLimit
	}
	if limit == nil {
		return 0
	}
	return min(max(*limit, 0), MaxConcurrency)
}

// Queue returns the queue of an installation, nil if it has none.
func (s *RepositoryStatus) Queue(installation string) *Queue {
	for i := range s.Queues {
		if s.Queues[i].Installation == installation {
			return &s.Queues[i]
		}
	}
	return nil
}

// SetQueue replaces an installation's queue, nil for none, and the sums.
func (s *RepositoryStatus) SetQueue(installation string, queue *Queue) {
	s.Queues = slices.DeleteFunc(s.Queues, func(q Queue) bool { return q.Installation == installation })
	if queue != nil {
		s.Queues = append(s.Queues, *queue)
	}
	if s.Running, s.Queued = nil, nil; len(s.Queues) == 0 {
		s.Queues = nil
		return
	}
	slices.SortFunc(s.Queues, func(a, b Queue) int {
		if a.Installation < b.Installation {
			return -1
		}
		return 1
	})
	running, queued := 0, 0
	for _, q := range s.Queues {
		running, queued = running+len(q.Slots), queued+q.Queued
	}
	s.Running, s.Queued = &running, &queued
}

// Slots returns the slots of all installations.
func (s *RepositoryStatus) Slots() []Slot {
	var all []Slot
	for _, q := range s.Queues {
		all = append(all, q.Slots...)
	}
	return all
}

// HasSlot reports whether an installation's run may be created.
func (s *RepositoryStatus) HasSlot(installation, event, run string) bool {
	queue := s.Queue(installation)
	return queue != nil &&
		slices.ContainsFunc(queue.Slots, func(slot Slot) bool { return slot.Event == event && slot.Run == run })
}
