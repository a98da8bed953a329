// SPDX-License-Identifier: Apache-2.0

package plan

import "github.com/plumbline-ci/plumbline/pkg/fault"

// runs are the runs of earlier attempts and of this one.
type runs struct{ all []Run }

// named returns the run whose PipelineRun has this name, nil if there is none.
func (r *runs) named(name string) *Run {
	for i := range r.all {
		if r.all[i].Name == name {
			return &r.all[i]
		}
	}
	return nil
}

// started returns the number of runs of pipelines that the event starts, or that are refused.
func (r *runs) started() (n int) {
	for i := range r.all {
		if !r.all[i].Unmatched() {
			n++
		}
	}
	return n
}

// put adds a run, or completes an unresolved one. The previous version stored names without the
// dash of a generateName. Then the check keeps that name: GitLab would show a second check, and the
// first would stay pending.
func (r *runs) put(run Run) {
	before := r.named(run.Name)
	if before == nil {
		r.all = append(r.all, run)
		return
	}
	if before.Pipeline+"-" == run.Pipeline {
		run.Pipeline = before.Pipeline
	}
	*before = run
}

// distinct refuses a run whose name, after its placeholders are replaced, is another run's. One
// check would have to show both, and GitLab's would show whichever reported last. The refusal has a
// check of its own.
func (r *runs) distinct(run *Run, file string) error {
	for i := range r.all {
		if other := &r.all[i]; other.Name != run.Name && other.Pipeline == run.Pipeline && !other.Unmatched() {
			name := run.Pipeline
			run.Pipeline = file
			return fault.Invalidf(reasonDuplicateName,
				"%s: with the variables replaced another PipelineRun is called %s, too: give each its own name", file, name)
		}
	}
	return nil
}
