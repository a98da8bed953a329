// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxConcurrency is the highest concurrency_limit: the status has the names of all running
// PipelineRuns.
const MaxConcurrency = 1000

// The slots and the waiting runs of one installation.
type Queue struct {
	// The namespace of the installation.
	Installation string `json:"installation"`
	// How many runs wait for a slot.
	Queued int `json:"queued"`
	// The runs that exist or may be created. A run keeps its slot until it is finished or can no
	// longer be created.
	// +optional
	// +listType=map
	// +listMapKey=run
	Slots []Slot `json:"slots,omitempty"`
}

// The permission of one run to be created.
type Slot struct {
	// The name of the PipelineRun. The slot stays with a later attempt, which has another name.
	Run string `json:"run"`
	// The name of its GitEvent.
	Event string `json:"event"`
	// When the run got the slot, or when it was found running without one. It is absent in an
	// object of an earlier version.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// When the slot is freed, if the run was cancelled before its PipelineRun was seen. A create
	// request that was sent before may arrive until then.
	// +optional
	FreeAt *metav1.Time `json:"freeAt,omitempty"`
}

// Concurrency returns how many runs of a Repository with this spec may run at once, 0 for no limit.
// A limit that it does not set is taken from the global Repository, which may be nil. Limits below
// 1, which only objects older than the schema have, mean no limit.
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

// SetQueue replaces an installation's queue (nil removes it) and updates the sums.
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
