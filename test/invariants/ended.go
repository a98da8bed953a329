// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"k8s.io/apimachinery/pkg/types"
)

// end records when a run was finished, if this version is the first that says so.
func (m *made) end(now *pipelinev1.PipelineRun) {
	if end := now.Status.CompletionTime; m.ended == nil && now.IsDone() && end != nil {
		m.ended = &end.Time
	}
}

// Ends returns when the PipelineRuns were finished, by name, according to the first version that
// said so. Later ones may have another time: if the answer to its write is lost and its cache
// lags, Tekton's controller ends a PipelineRun once more.
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

// Marked returns the PipelineRuns that were ever marked as reported, by UID.
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
