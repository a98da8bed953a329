// SPDX-License-Identifier: Apache-2.0

package show

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/planning"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// maxComment is how many characters of a comment the headline shows.
const maxComment = 60

// headline says in one line which event was planned.
func headline(result *planning.Result) string {
	spec := result.Plan.Spec
	parts := []string{subject(result), strings.TrimPrefix(strings.TrimPrefix(spec.Project.URL, "https://"), "http://")}
	if files := result.Changed; files != nil {
		said := fmt.Sprintf("%d changed files", files.Count)
		if files.Count == 1 {
			said = "1 changed file"
		}
		if files.Uncommitted > 0 {
			said += fmt.Sprintf(" (%d uncommitted)", files.Uncommitted)
		}
		parts = append(parts, said)
	}
	author := result.Given.Author
	if spec.PullRequest == nil {
		author = ""
	}
	if author != "" {
		parts = append(parts, "opened by "+author)
	}
	if result.Given.Sender && !strings.EqualFold(spec.Sender, author) {
		parts = append(parts, "by "+spec.Sender)
	}
	return oneLine(strings.Join(parts, ", "))
}

// subject says what happened to which branch.
func subject(result *planning.Result) string {
	spec := result.Plan.Spec
	pull, target := pullRequest(result), branch(spec.BaseRef)
	switch {
	case spec.Comment != nil:
		line := text.Shorten(text.FirstLine(spec.Comment.Body, len(spec.Comment.Body)), maxComment, text.Runes)
		return fmt.Sprintf("Comment %q on %s", line, cmp.Or(pull, fmt.Sprintf("commit %.8s of %s", spec.SHA, target)))
	case spec.Incoming != nil:
		return fmt.Sprintf("Request to /incoming for %s on %s", spec.Incoming.Pipeline, target)
	case spec.EventType == match.LabelEvent:
		label := ""
		if labels := spec.PullRequest.Labels; len(labels) > 0 {
			label = " " + labels[len(labels)-1]
		}
		return "Label" + label + " on " + pull
	case spec.Trigger == v1alpha1.TriggerMergeGroup:
		return "Merge queue of " + target
	case spec.Closes():
		return "Closing of " + pull
	case pull != "":
		return "P" + pull[1:]
	case spec.Trigger == v1alpha1.TriggerPush:
		return "Push of " + pushed(result.From, spec.BaseRef)
	}
	return "Push of " + target
}

// pullRequest names the pull request and its branches; "" if the event is of none.
func pullRequest(result *planning.Result) string {
	spec := result.Plan.Spec
	if spec.PullRequest == nil {
		return ""
	}
	pull := "pull request"
	if result.Given.Number {
		pull = fmt.Sprintf("pull request %d", spec.PullRequest.Number)
	}
	if from, to := cmp.Or(spec.HeadRef, result.From), cmp.Or(spec.BaseRef, result.To); from != "" {
		pull += fmt.Sprintf(" %s → %s", from, to)
	}
	return pull
}

// pushed names the branch or tag that a push changes, and the branch that is taken for it.
func pushed(from, ref string) string {
	target := branch(ref)
	if from != "" && ref == "refs/heads/"+target && from != target {
		return from + " to " + target
	}
	return target
}

// branch returns a ref as people say it.
func branch(ref string) string {
	if tag, found := strings.CutPrefix(ref, "refs/tags/"); found {
		return "tag " + tag
	}
	return strings.TrimPrefix(ref, "refs/heads/")
}
