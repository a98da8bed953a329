// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"k8s.io/apimachinery/pkg/types"
)

// end remembers when a run was over, if this version is the first that says so.
func (m *made) end(now *pipelinev1.PipelineRun) {
	if end := now.Status.CompletionTime; m.ended == nil && now.IsDone() && end != nil {
		m.ended = &end.Time
	}
}

// Ends are when the PipelineRuns were over, by name, as the first version said that did. Later ones
// may say another time: if the answer to its write is lost, and its cache lags, Tekton's controller
// ends a PipelineRun once more.
func (h *History) Ends() map[string]time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	ends := map[string]time.Time{}
	for _, run := range h.runs {
		if run.ended != nil {
			ends[run.Name] = *run.ended
		}
	}
	return ends
}

// Marked are the PipelineRuns that ever said that their end is reported, by UID.
func (h *History) Marked() map[types.UID]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	marked := map[types.UID]bool{}
	for _, run := range h.runs {
		if run.marked {
			marked[run.UID] = true
		}
	}
	return marked
}
