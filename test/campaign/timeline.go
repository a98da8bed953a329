// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"fmt"
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/invariants"
)

// around is how long before and after a subject's events disturbances are listed.
const around = 2 * time.Second

// findings returns the broken invariants, each with its timeline.
func (c *checker) findings() (out []Finding) {
	for _, v := range c.broken {
		out = append(out, Finding{Violation: v, Timeline: c.timeline(v.Subject)})
	}
	return out
}

// timeline returns the events of a delivery, GitEvent or PipelineRun and of related objects, and
// the disturbances meanwhile.
func (c *checker) timeline(subject string) []string {
	own, names, keys := c.eventsOf(subject)
	for _, run := range c.last.Made() {
		if !names[run.Name] {
			continue
		}
		own = append(own, moment{
			run.CreationTimestamp.Time, fmt.Sprintf("PipelineRun %s is created (%s)", run.Name, run.UID),
		})
		if run.Status.CompletionTime != nil {
			own = append(own, moment{run.Status.CompletionTime.Time,
				fmt.Sprintf("PipelineRun %s ends: %s", run.Name, run.Status.GetCondition("Succeeded").Reason)})
		}
	}
	for _, p := range c.pruned {
		if names[p.Run.Name] {
			own = append(own, moment{p.At, fmt.Sprintf("PipelineRun %s is gone", p.Run.Name)})
		}
	}
	for _, d := range c.last.Deliveries {
		if keys[d.Key] {
			own = append(own, moment{
				d.At, fmt.Sprintf("delivery %s is answered %d after %v", d.Key, d.Code, d.Took.Round(time.Millisecond)),
			})
		}
	}
	for _, w := range c.last.Writes {
		if names[w.ExternalID] {
			own = append(own, moment{w.At, written(w)})
		}
	}
	if len(own) == 0 {
		return nil
	}
	byTime := func(a, b moment) int { return a.at.Compare(b.at) }
	begin, end := slices.MinFunc(own, byTime).at, slices.MaxFunc(own, byTime).at
	return c.stage.tally.lines(append(own, c.stage.tally.between(begin.Add(-around), end.Add(around))...))
}

// eventsOf returns the events of a subject, and the names of their runs and the keys of their
// deliveries, the subject's among both.
func (c *checker) eventsOf(subject string) (own []moment, names, keys map[string]bool) {
	names, keys = map[string]bool{subject: true}, map[string]bool{subject: true}
	for _, event := range c.last.Events {
		if event.Name != subject && event.Spec.DeliveryKey != subject &&
			!slices.ContainsFunc(event.Status.Runs, func(r v1alpha1.Run) bool { return r.Name == subject }) {
			continue
		}
		keys[event.Spec.DeliveryKey] = true
		own = append(own, moment{event.CreationTimestamp.Time,
			fmt.Sprintf("GitEvent %s is recorded; it is %s %q now, phase %q, waits %v",
				event.Name, event.Status.Disposition, event.Status.Outcome, event.Status.Phase, event.Status.Waits)})
		if event.Status.Plan != nil {
			for _, d := range event.Status.Plan.Decisions {
				own = append(own, moment{
					event.CreationTimestamp.Time, fmt.Sprintf("%s at %s: %s", d.File, event.Spec.BaseRef, d.Reason),
				})
			}
		}
		for _, run := range event.Status.Runs {
			names[run.Name] = true
		}
	}
	return own, names, keys
}

func written(w invariants.Write) string {
	effect := "without effect"
	if w.Applied {
		effect = "with effect"
	}
	return fmt.Sprintf("write %d at %s: check %s of %s is %s %q, %s", w.N, w.Repository, w.Check, w.ExternalID, w.Status,
		w.Conclusion, effect)
}
