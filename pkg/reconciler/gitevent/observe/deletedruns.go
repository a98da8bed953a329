// SPDX-License-Identifier: Apache-2.0

package observe

import (
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
)

// maxEnded bounds the PipelineRuns that are remembered, at most some 6 KiB each.
const maxEnded = 1000

// DeletedRuns stores the finished PipelineRuns that were deleted, for events that have not read
// them yet: a user or a controller that prunes them may be faster than a Git service that hangs. It
// is only a hint: a run that it does not know is reported as deleted.
type DeletedRuns struct {
	runs recent.Map[types.UID, *pipelinev1.PipelineRun]
}

// NewDeletedRuns returns a DeletedRuns that knows no run.
func NewDeletedRuns() *DeletedRuns {
	return &DeletedRuns{runs: recent.Map[types.UID, *pipelinev1.PipelineRun]{Max: maxEnded}}
}

// Note remembers a run that was deleted, if it was finished.
func (d *DeletedRuns) Note(run *pipelinev1.PipelineRun) {
	if run.IsDone() {
		d.runs.Put(run.UID, run)
	}
}

// Get returns the run as it was when it was deleted, nil if it is not known.
func (d *DeletedRuns) Get(uid types.UID) *pipelinev1.PipelineRun {
	run, _ := d.runs.Get(uid)
	return run
}
