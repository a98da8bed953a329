// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

const (
	// MaxBytes is the maximum size of all manifests of one event in JSON, over all attempts: what
	// one blob stores.
	MaxBytes = 32 << 20
	// reasonTooLarge is the reason of PipelineRuns that are too large together.
	reasonTooLarge = "PlanTooLarge"
)

// size is the size of the PipelineRuns of one attempt as a JSON list.
type size struct {
	earlier   int            // bytes of earlier attempts
	bytes     map[string]int // by name
	pipelines map[string]string
	total     int
}

func (s *size) add(run *Run) {
	if s.bytes == nil {
		s.bytes, s.pipelines, s.total = map[string]int{}, map[string]string{}, len("]")
	}
	s.bytes[run.Name], s.pipelines[run.Name] = len(run.Manifest), run.Pipeline
	s.total += len(",") + len(run.Manifest)
}

func (s *size) tooLarge() bool { return s.earlier+s.total > MaxBytes }

// message returns the sentence for the author.
func (s *size) message() string {
	const named = 3
	largest := slices.SortedFunc(maps.Keys(s.bytes), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.bytes[b], s.bytes[a]), strings.Compare(a, b))
	})
	var names []string
	for _, name := range largest[:min(named, len(largest))] {
		names = append(names, fmt.Sprintf("%s (%d KiB)", s.pipelines[name], s.bytes[name]>>10))
	}
	started := ""
	if s.earlier > 0 {
		started = fmt.Sprintf(" in addition to the %.1f MiB of those that were started before", float64(s.earlier)/(1<<20))
	}
	return fmt.Sprintf(
		"the %d PipelineRuns that this event would start take %.1f MiB with their tasks inlined%s, and at most %d MiB are stored for one event: "+
			"none is started. Move long scripts into an image, refer to large Tasks with a resolver, or let fewer pipelines start for one event. The largest: %s",
		len(s.bytes),
		float64(s.total)/(1<<20),
		started,
		MaxBytes>>20,
		strings.Join(names, ", "),
	)
}

func (d *draft) forgetManifests() {
	for i := range d.runs.all {
		d.runs.all[i].Manifest = nil
	}
}

// refuseLarge refuses the runs. Each has its own check, so that a required check shows the refusal.
// What earlier attempts planned and created is not changed.
func (d *draft) refuseLarge(all *size, open []*candidate) {
	message := all.message()
	for _, c := range open {
		if all.bytes[c.run] == 0 {
			continue
		}
		c.decide(message)
		run := d.runs.named(c.run)
		run.Refused, run.Secret = &v1alpha1.Refusal{Reason: reasonTooLarge, Message: message}, ""
	}
}
