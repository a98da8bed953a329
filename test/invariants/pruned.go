// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"slices"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
)

// Pruning is what a violation is called that is none of docs/codes.md: a PipelineRun is deleted
// that should be there.
const Pruning = "pruning"

// Pruned is a PipelineRun that was deleted.
type Pruned struct {
	// Run is its last version, without its spec.
	Run pipelinev1.PipelineRun
	// At is when it was seen to be gone, a little later than it was.
	At time.Time
	// Keep is how many ended ones its author wants to keep of the pipeline, -1 for all. Kept is how
	// many were there that had not ended before it when it was deleted.
	Keep, Kept int
}

// Pruned are the PipelineRuns that were deleted so far.
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

// kept is how many runs of a run's pipeline are there that are over and have not ended before it.
// Tekton may end a PipelineRun twice: its event has noted one of the times.
func (h *History) kept(run *made) (kept int) {
	for _, other := range h.runs {
		same := other != run && other.gone == nil && other.repository == run.repository && other.pipeline == run.pipeline
		if end := other.Status.CompletionTime; same && other.IsDone() && end != nil && (run.ended == nil || !end.Time.Before(*run.ended)) {
			kept++
		}
	}
	return kept
}

// Early are the PipelineRuns that were deleted and should not have been: one that is not over,
// whose result the Git service has not accepted before, that its author wants to keep, or in whose
// place no newer ones are kept. They are to be read before the evidence: what was accepted before
// they were deleted is in it then.
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
			broken = append(broken, Violated(Pruning, name, "PipelineRun %s is deleted and all of its pipeline are to be kept", name))
		case p.Kept < p.Keep:
			broken = append(broken, Violated(Pruning, name, "PipelineRun %s is deleted, and of its pipeline %d are kept that ended later, not %d", name, p.Kept, p.Keep))
		case !known || at.After(p.At):
			broken = append(broken, Violated(Pruning, name, "PipelineRun %s is deleted at %s, and the Git service has not accepted its result before", name, p.At.Format(time.TimeOnly)))
		}
	}
	return broken
}

// Remember adds the PipelineRuns that were deleted, so that verdicts are compared with how they
// ended.
func (e *Evidence) Remember(pruned []Pruned) {
	for _, p := range pruned {
		if !slices.ContainsFunc(e.Live, func(run pipelinev1.PipelineRun) bool { return run.UID == p.Run.UID }) {
			e.Gone = append(e.Gone, p.Run)
		}
	}
}

// Made are the PipelineRuns that are there, and those of which Remember was told.
func (e *Evidence) Made() []pipelinev1.PipelineRun { return slices.Concat(e.Live, e.Gone) }
