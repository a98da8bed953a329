// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/blob"
)

// reasonPlanTooLarge refuses PipelineRuns that cannot be kept together.
const reasonPlanTooLarge = "PlanTooLarge"

// planned are the PipelineRuns that one attempt to plan has made, and what they take as a list in JSON. Once that is more
// than can be kept, only the sizes are.
type planned struct {
	manifests []*pipelinev1.PipelineRun
	sizes     map[string]int // by name
	pipelines map[string]string
	total     int
}

func (p *planned) add(manifest *pipelinev1.PipelineRun, pipeline string) error {
	data, err := json.Marshal(manifest)
	if err != nil {
		return fmt.Errorf("encoding PipelineRun %s: %w", manifest.Name, err)
	}
	if p.sizes == nil {
		p.sizes, p.pipelines, p.total = map[string]int{}, map[string]string{}, len("]")
	}
	p.sizes[manifest.Name], p.pipelines[manifest.Name] = len(data), pipeline
	p.manifests = append(p.manifests, manifest)
	if p.total += len(",") + len(data); p.tooLarge() {
		p.manifests = nil
	}
	return nil
}

func (p *planned) tooLarge() bool { return p.total > blob.MaxBytes }

// told is the sentence for the author.
func (p *planned) told() string {
	const named = 3
	largest := slices.SortedFunc(maps.Keys(p.sizes), func(a, b string) int {
		return cmp.Or(cmp.Compare(p.sizes[b], p.sizes[a]), strings.Compare(a, b))
	})
	var names []string
	for _, name := range largest[:min(named, len(largest))] {
		names = append(names, fmt.Sprintf("%s (%d KiB)", p.pipelines[name], p.sizes[name]>>10))
	}
	return fmt.Sprintf("the %d PipelineRuns that this event would start take %.1f MiB with their tasks inlined, and at most %d MiB are kept for one event: "+
		"none of them is started. Move long scripts into an image, refer to large Tasks with a resolver, or let fewer pipelines start for one event. The largest: %s",
		len(p.sizes), float64(p.total)/(1<<20), blob.MaxBytes>>20, strings.Join(names, ", "))
}

// refuse makes refusals of the runs: each has a check of its own, so that the one that is required shows it. What was
// planned and created for the event before is not touched.
func (p *planned) refuse(w *work, candidates []*candidate) {
	message := p.told()
	for i := range w.event.Status.Runs {
		if run := &w.event.Status.Runs[i]; p.sizes[run.Name] > 0 {
			run.Refused, run.Secret = &v1alpha1.Refusal{Reason: reasonPlanTooLarge, Message: message}, ""
		}
	}
	for _, c := range candidates {
		if p.sizes[w.runName(c.definition)] > 0 {
			c.decide(message)
		}
	}
	*p = planned{}
}
