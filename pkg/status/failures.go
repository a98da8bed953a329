// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/status/diagnosis"
)

// FailuresMark begins the comment that lists the failed pipelines of a pull request.
const FailuresMark = "<!-- plumbline failures -->"

const (
	maxFailures = 40 // pipelines in the comment
	// maxConcluded is how many events of one commit the comment is about: after so many /retest of
	// one commit, the results of the first ones are left out.
	maxConcluded = 10
)

// Concluded reports whether an event of a pull request has results for the comment about failed
// pipelines: one of its runs has failed, or all of them are finished.
func Concluded(event *v1alpha1.GitEvent) bool {
	if event.Spec.PullRequest == nil || event.Status.Plan == nil || event.Status.Plan.HeadSHA == "" {
		return false
	}
	return Failing(event) || slices.ContainsFunc(event.Status.Runs, finished) &&
		!slices.ContainsFunc(event.Status.Runs, func(run v1alpha1.Run) bool { return !finished(run) && run.Refused == nil })
}

// Failing reports whether a PipelineRun of the event has failed. A definition that was refused has
// a comment of its own.
func Failing(event *v1alpha1.GitEvent) bool {
	return slices.ContainsFunc(event.Status.Runs,
		func(run v1alpha1.Run) bool { return conclusionOf(run.Result) == Failure })
}

func finished(run v1alpha1.Run) bool { return conclusionOf(run.Result) != "" && !run.Skipped() }

// NewestConcluded returns the Concluded events of the newest commit that has any, the newest first.
func NewestConcluded(events []*v1alpha1.GitEvent) []*v1alpha1.GitEvent {
	events = slices.DeleteFunc(slices.Clone(events), func(e *v1alpha1.GitEvent) bool { return !Concluded(e) })
	slices.SortFunc(events, func(a, b *v1alpha1.GitEvent) int { return CompareCommands(b, a) })
	events = slices.DeleteFunc(events, func(e *v1alpha1.GitEvent) bool {
		return e.Status.Plan.HeadSHA != events[0].Status.Plan.HeadSHA
	})
	return events[:min(len(events), maxConcluded)]
}

// failed is a pipeline whose newest result is a failure. All of it is Markdown.
type failed struct{ Pipeline, Says string }

// Failures returns the comment about the failed pipelines of a pull request. Of several results of
// a pipeline on the newest commit, the newest counts.
func Failures(events []*v1alpha1.GitEvent) string {
	page := struct {
		Mark, Head, More, Advice string
		Failed                   []failed
	}{Mark: FailuresMark}
	events = NewestConcluded(events)
	page.Failed = failures(events)
	if len(events) > 0 {
		head := failuresFixed
		if len(page.Failed) > 0 {
			head, page.Advice = failuresFailed, failuresAdvice
		}
		page.Head = fmt.Sprintf(head, quoted(events[0].Status.Plan.HeadSHA))
	}
	slices.SortFunc(page.Failed, func(a, b failed) int { return cmp.Compare(a.Pipeline, b.Pipeline) })
	if more := len(page.Failed) - maxFailures; more > 0 {
		page.Failed, page.More = page.Failed[:maxFailures], fmt.Sprintf(validationMore, more)
	}
	return render("failures.md", page)
}

// ListsFailures reports whether the comment about some events lists any pipeline. The events are
// NewestConcluded.
func ListsFailures(events []*v1alpha1.GitEvent) bool { return len(failures(events)) > 0 }

// failures returns the pipelines whose newest result is a failure, in the order of the events.
func failures(events []*v1alpha1.GitEvent) (rows []failed) {
	seen := map[string]bool{}
	for _, event := range events {
		for _, run := range event.Status.Runs {
			if !finished(run) || seen[run.Pipeline] {
				continue
			}
			seen[run.Pipeline] = true
			if conclusionOf(run.Result) == Failure {
				title := diagnosis.Title(run.Result.Verdict, run.Result.Cause)
				rows = append(rows, failed{
					Pipeline: quoted(shorten(run.Pipeline, "…", maxReason)), Says: quoted(shorten(title, "…", maxErrorRow)),
				})
			}
		}
	}
	return rows
}
