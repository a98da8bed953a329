// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"sync"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// endedFor is how long a deleted run is remembered. Its event is woken at once, and looks when
	// what it is at has ended.
	endedFor = 10 * time.Minute
	// maxEnded bounds them; the oldest one gives way.
	maxEnded = 1000
)

// Ended is how PipelineRuns had ended that were deleted before their event has looked: whoever
// prunes them may be faster than a Git service that hangs. The zero value knows none. It is advice:
// of what it does not know is said that it was deleted.
type DeletedRuns struct {
	mu   sync.Mutex
	runs map[types.UID]deleted
}

type deleted struct {
	run *pipelinev1.PipelineRun
	at  time.Time
}

// Note remembers a run that was deleted, if it had ended.
func (e *DeletedRuns) Note(run *pipelinev1.PipelineRun, now time.Time) {
	if !run.IsDone() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.runs == nil {
		e.runs = map[types.UID]deleted{}
	}
	oldest, at := run.UID, now
	for uid, known := range e.runs {
		if now.Sub(known.at) > endedFor {
			delete(e.runs, uid)
			continue
		}
		if known.at.Before(at) {
			oldest, at = uid, known.at
		}
	}
	if len(e.runs) >= maxEnded {
		delete(e.runs, oldest)
	}
	e.runs[run.UID] = deleted{run, now}
}

// Of returns the run as it had ended, nil if nothing is known of it.
func (e *DeletedRuns) Of(uid types.UID) *pipelinev1.PipelineRun {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runs[uid].run
}
