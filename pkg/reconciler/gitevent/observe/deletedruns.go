// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"sync"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// endedFor is how long a deleted run is remembered. Its event is woken at once, and reads it
	// when its current reconcile has finished.
	endedFor = 10 * time.Minute
	// maxEnded bounds them; the oldest one is evicted.
	maxEnded = 1000
)

// DeletedRuns has the PipelineRuns that were deleted after they finished and before their event has
// read them. A user who prunes them may be faster than a Git service that hangs. The zero value is
// empty. It is only a hint: a run that it does not have is reported as deleted.
type DeletedRuns struct {
	mu   sync.Mutex
	runs map[types.UID]deleted
}

type deleted struct {
	run *pipelinev1.PipelineRun
	at  time.Time
}

// Note remembers a run that was deleted, if it was finished.
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

// Get returns the run as it finished, nil if it is not remembered.
func (e *DeletedRuns) Of(uid types.UID) *pipelinev1.PipelineRun {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runs[uid].run
}
