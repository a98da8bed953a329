// SPDX-License-Identifier: Apache-2.0

package status

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// ValidationMark begins the comment that lists the errors in the files of .tekton.
const ValidationMark = "<!-- plumbline validation -->"

const (
	maxErrors   = 40  // errors in the comment
	maxErrorRow = 600 // bytes of one
)

// Validated reports whether all files of .tekton were read for an event of a pull request, so that
// it says whether they have errors. A comment or a re-run may be about some of the pipelines. So it
// counts only if it found errors, or if it is an approval, which is about all pipelines.
func Validated(event *v1alpha1.GitEvent) bool {
	plan, how := event.Status.Plan, event.Status.Disposition
	if event.Spec.PullRequest == nil || !plan.Decided() || plan.DefinitionSHA == "" ||
		how != v1alpha1.DispositionRuns && how != v1alpha1.DispositionIgnored {
		return false
	}
	approves := plan.Approval != nil && plan.Approval.Event == event.Name
	return event.Spec.Comment == nil && event.Spec.Rerun == nil || approves || Invalid(event)
}

// Invalid reports whether the author's definition of a run was refused.
func Invalid(event *v1alpha1.GitEvent) bool {
	return slices.ContainsFunc(event.Status.Runs, func(run v1alpha1.Run) bool { return run.Refused != nil })
}

// NewestValidated returns a slice with only the newest event that is Validated; nil without one.
func NewestValidated(events []*v1alpha1.GitEvent) (newest []*v1alpha1.GitEvent) {
	for _, event := range events {
		if Validated(event) && (len(newest) == 0 || CompareCommands(event, newest[0]) > 0) {
			newest = []*v1alpha1.GitEvent{event}
		}
	}
	return newest
}

// invalid is one error in the files of .tekton. All of it is Markdown.
type invalid struct{ File, Pipeline, Says string }

// Validation returns the comment about the files of .tekton at the newest of some events of a pull
// request.
func Validation(events []*v1alpha1.GitEvent) string {
	page := struct {
		Mark, Head, More, Advice string
		Errors                   []invalid
	}{Mark: ValidationMark}
	for _, event := range NewestValidated(events) {
		page.Errors = invalids(event)
		head := validationFixed
		if len(page.Errors) > 0 {
			head, page.Advice = validationErrors, validationAdvice
		}
		page.Head = fmt.Sprintf(head, quoted(event.Status.Plan.HeadSHA))
	}
	if more := len(page.Errors) - maxErrors; more > 0 {
		page.Errors, page.More = page.Errors[:maxErrors], fmt.Sprintf(validationMore, more)
	}
	return render("validation.md", page)
}

func invalids(event *v1alpha1.GitEvent) (rows []invalid) {
	for i := range event.Status.Runs {
		if run := &event.Status.Runs[i]; run.Refused != nil {
			rows = append(rows, invalid{
				File:     quoted(fileOf(event.Status.Plan, run)),
				Pipeline: quoted(shorten(run.Pipeline, "…", maxReason)),
				Says:     quoted(shorten(run.Refused.Message, "…", maxErrorRow)),
			})
		}
	}
	return rows
}

// fileOf returns the file of a refused run: the one that was decided for the same reason, or else
// the one that defines a pipeline with its name.
func fileOf(plan *v1alpha1.Plan, run *v1alpha1.Run) (file string) {
	for _, d := range plan.Decisions {
		if d.Reason == run.Refused.Message {
			return d.File
		}
		if d.Pipeline == run.Pipeline {
			file = d.File
		}
	}
	return file
}

// TextDigest identifies a text. It is the same in every process.
func TextDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
