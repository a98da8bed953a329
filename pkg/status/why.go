// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Why collects what became of each pipeline of one commit, for the answer to /why. Events may be
// added in any order, and none of them is stored. The zero value is of no commit.
type Why struct {
	// Commit is the commit that is asked about.
	Commit string

	pipelines map[string]said
	event     said // about an event as a whole
}

// said is a sentence, and the event that it is from.
type said struct {
	text string
	ran  bool // about a run, which outweighs that another event did not select the pipeline
	at   time.Time
	name string
}

// compare orders two sentences about a pipeline: the last one is the answer.
func (s said) compare(other said) int {
	switch {
	case s.ran != other.ran && s.ran:
		return 1
	case s.ran != other.ran:
		return -1
	}
	return cmp.Or(s.at.Compare(other.at), cmp.Compare(s.name, other.name))
}

// Add adds an event of the pull request. Comments that have started nothing say nothing about a
// pipeline.
func (w *Why) Add(event *v1alpha1.GitEvent) {
	plan, commit := event.Status.Plan, event.Spec.SHA
	if plan != nil {
		commit = plan.HeadSHA
	}
	if commit != w.Commit || event.Spec.Comment != nil && len(event.Status.Runs) == 0 {
		return
	}
	of := said{at: event.RecordedAt(), name: event.Name}
	for i := range event.Status.Runs {
		if run := &event.Status.Runs[i]; !standsForPlan(run) {
			w.pipeline(run.Pipeline, of.run(event, run))
		}
	}
	if plan != nil {
		for _, d := range plan.Decisions {
			if text := decided(&d); text != "" {
				w.pipeline(cmp.Or(d.Pipeline, d.File), of.says(text))
			}
		}
	}
	if text := ofEvent(event); text != "" && of.compare(w.event) > 0 {
		w.event = of.says(text)
	}
}

func (s said) says(text string) said {
	s.text = shorten(text, "…", maxWhy)
	return s
}

func (w *Why) pipeline(name string, s said) {
	if w.pipelines == nil {
		w.pipelines = map[string]said{}
	}
	if known, found := w.pipelines[name]; !found || known.compare(s) < 0 {
		w.pipelines[name] = s
	}
}

// Decisions returns a sentence for each pipeline, in the order of their names: for all of them, or
// for those that are named. A sentence about the newest event as a whole has no pipeline.
func (w *Why) Decisions(names []string) (all []v1alpha1.Decision) {
	newest := time.Time{}
	for _, name := range slices.Sorted(maps.Keys(w.pipelines)) {
		s := w.pipelines[name]
		if s.at.After(newest) {
			newest = s.at
		}
		if len(names) == 0 || slices.Contains(names, strings.TrimSuffix(name, "-")) || slices.Contains(names, name) {
			all = append(all, v1alpha1.Decision{Pipeline: name, Reason: s.text})
		}
	}
	if w.event.text != "" && (len(w.pipelines) == 0 || w.event.at.After(newest)) {
		all = append([]v1alpha1.Decision{{Reason: w.event.text}}, all...)
	}
	if len(all) > maxBecause {
		more := fmt.Sprintf(whyMore, len(all)-maxBecause)
		all = append(all[:maxBecause:maxBecause], v1alpha1.Decision{Reason: more})
	}
	return all
}

// run returns the sentence about a run of an event.
func (s said) run(event *v1alpha1.GitEvent, run *v1alpha1.Run) said {
	s.ran = true
	result := run.Result
	switch {
	case result != nil && run.UID == "":
		return s.says(fmt.Sprintf(whyNotStarted, cmp.Or(result.Message, result.Reason)))
	case result != nil:
		return s.says(ranAndEnded(result))
	case run.UID != "":
		return s.says(whyRuns)
	case run.Refused != nil:
		return s.says(fmt.Sprintf(whyRefused, run.Refused.Message))
	}
	for i := range event.Status.Waits {
		wait := &event.Status.Waits[i]
		switch {
		case wait.Step != v1alpha1.StepCreate+run.Name:
		case wait.Reason == fault.ReasonConcurrencyLimit:
			return s.says(fmt.Sprintf(whyQueued, wait.Message))
		default:
			return s.says(fmt.Sprintf(whyWaits, wait.Message))
		}
	}
	return s.says(whyStarts)
}

// ranAndEnded returns the sentence about a finished PipelineRun.
func ranAndEnded(result *v1alpha1.Result) string {
	why := result.Words()
	switch result.Outcome {
	case v1alpha1.OutcomeSucceeded:
		return whySucceeded
	case v1alpha1.OutcomeFailed:
		return fmt.Sprintf(whyFailed, why)
	case v1alpha1.OutcomeDeleted:
		return whyDeleted
	}
	return fmt.Sprintf(whyCancelled, why)
}

// decided returns the sentence about a pipeline that an event has not started, or "".
func decided(d *v1alpha1.Decision) string {
	switch {
	case d.Open:
		return fmt.Sprintf(whyUndecided, d.Reason)
	case d.Reason == v1alpha1.NotNamed, strings.HasPrefix(d.Reason, "selected"):
		return ""
	}
	return fmt.Sprintf(whyNotStarted, d.Reason)
}

// ofEvent returns the sentence about an event as a whole, or "" if each pipeline has its own.
func ofEvent(event *v1alpha1.GitEvent) string {
	plan := event.Status.Plan
	if plan == nil {
		for _, wait := range event.Status.Waits {
			if wait.Step == v1alpha1.StepPlan {
				return fmt.Sprintf(whyWaiting, wait.Message)
			}
		}
		return whyUnplanned
	}
	if len(plan.Decisions) > 0 || len(event.Status.Runs) > 0 || plan.StartedBy != "" {
		return ""
	}
	switch event.Status.Disposition {
	case v1alpha1.DispositionPending:
		return fmt.Sprintf(whyPending, plan.Message)
	case v1alpha1.DispositionIgnored, v1alpha1.DispositionSkipped, v1alpha1.DispositionRefused,
		v1alpha1.DispositionSuperseded:
		return fmt.Sprintf(whyNothing, cmp.Or(plan.Message, plan.Reason))
	}
	return ""
}

// Explains reports whether an event is a /why that is answered.
func Explains(event *v1alpha1.GitEvent) bool {
	return event.Status.Plan != nil && event.Status.Plan.Reason == v1alpha1.Explained
}

// explained lists what became of the pipelines, as the plan of a /why has it.
func explained(plan *v1alpha1.Plan) (lines []string) {
	for _, d := range plan.Decisions {
		says := quoted(shorten(d.Reason, "…", maxWhy))
		if d.Pipeline != "" {
			says = span(shorten(d.Pipeline, "…", maxReason)) + " " + says
		}
		lines = append(lines, says)
	}
	return lines
}

// explains returns the sentence in front of that list, or what the plan says if there is none.
func explains(plan *v1alpha1.Plan) string {
	if len(plan.Decisions) == 0 {
		return quoted(shorten(plan.Message, "…", maxSays))
	}
	return replyExplains
}
