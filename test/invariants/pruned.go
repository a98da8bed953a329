// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"slices"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
)

// Pruning is the name of a violation outside of docs/codes.md: a PipelineRun is deleted too early.
const Pruning = "pruning"

// Pruned is a deleted PipelineRun.
type Pruned struct {
	// Run is its last version, without its spec.
	Run pipelinev1.PipelineRun
	// At is when it was seen to be gone, a little later than it was.
	At time.Time
	// Keep is how many ended ones its author wants to keep of the pipeline, -1 for all. Kept is how
	// many were there that had not ended before it when it was deleted.
	Keep, Kept int
}

// Pruned returns the PipelineRuns that were deleted so far.
func (h *History) Pruned() (all []Pruned) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, run := range h.runs {
		if run.gone != nil {
			all = append(all, Pruned{Run: run.PipelineRun, At: *run.gone, Keep: run.keep, Kept: run.kept})
		}
	}
	return all
}

// kept returns how many finished runs of a run's pipeline exist that did not end before it. Tekton
// may end a PipelineRun twice: its event has recorded one of the times.
func (h *History) kept(run *made) (kept int) {
	for _, other := range h.runs {
		same := other != run && other.gone == nil && other.repository == run.repository && other.pipeline == run.pipeline
		if end := other.Status.CompletionTime; same && other.IsDone() && end != nil &&
			(run.ended == nil || !end.Time.Before(*run.ended)) {
			kept++
		}
	}
	return kept
}

// Early returns the PipelineRuns that were deleted too early: unfinished ones, those whose result
// the Git service had not accepted, those that the author keeps, and those without newer ones in
// their place. Read them before the evidence, which then has the results that were accepted
// before.
func (e *Evidence) Early(pruned []Pruned) (broken []Violation) {
	accepted := map[string]time.Time{}
	for _, w := range e.Writes {
		if _, known := accepted[w.ExternalID]; !known && w.Applied && w.Conclusion != "" {
			accepted[w.ExternalID] = w.At
		}
	}
	for _, p := range pruned {
		name := p.Run.Name
		switch at, known := accepted[name]; {
		case !p.Run.IsDone():
			broken = append(broken, Violated(Pruning, name, "PipelineRun %s is deleted and is not over", name))
		case p.Keep < 0:
			broken = append(broken, Violated(Pruning, name, "PipelineRun %s is deleted and all of its pipeline are to be kept",
				name))
		case p.Kept < p.Keep:
			broken = append(broken, Violated(Pruning, name,
				"PipelineRun %s is deleted, and of its pipeline %d are kept that ended later, not %d", name, p.Kept, p.Keep))
		case !known || at.After(p.At):
			broken = append(broken, Violated(Pruning, name,
				"PipelineRun %s is deleted at %s, and the Git service has not accepted its result before", name,
				p.At.Format(time.TimeOnly)))
		}
	}
	return broken
}

// Remember adds the deleted PipelineRuns, so that conclusions are compared with how they ended.
func (e *Evidence) Remember(pruned []Pruned) {
	for _, p := range pruned {
		if !slices.ContainsFunc(e.Live, func(run pipelinev1.PipelineRun) bool { return run.UID == p.Run.UID }) {
			e.Gone = append(e.Gone, p.Run)
		}
	}
}

// Made returns the PipelineRuns that exist, and those that Remember added.
func (e *Evidence) Made() []pipelinev1.PipelineRun { return slices.Concat(e.Live, e.Gone) }
