// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strconv"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
)

// Wishes are what an author says of other runs of the pipeline.
type Wishes struct {
	// Keep is how many ended runs its author wants to keep, nil if the author says nothing of it.
	Keep *Keep
	// Cancel is whether older runs end; the zero value is no.
	Cancel CancelInProgress
}

// CancelInProgress is whether a run ends older ones of its pipeline, of the same pull request, branch or tag.
type CancelInProgress struct {
	On bool
	// Problem says why it does not although its author has written something, "" if that is understood.
	Problem string
}

// wishes reads the annotations of a PipelineRun.
func (d *draft) wishes(made *pipelinev1.PipelineRun) Wishes {
	return Wishes{Keep: d.keeps(made), Cancel: d.cancelsInProgress(made)}
}

// cancelsInProgress reads the annotation cancel-in-progress; where there is none the installation's setting counts.
func (d *draft) cancelsInProgress(made *pipelinev1.PipelineRun) CancelInProgress {
	written, found := made.Annotations[pipelinesascode.CancelInProgress]
	switch text := strings.TrimSpace(written); {
	case !found && d.spec.PullRequest != nil:
		return CancelInProgress{On: d.Config.CancelInProgress.PullRequests}
	case !found:
		return CancelInProgress{On: d.Config.CancelInProgress.Pushes}
	case text == "true" || text == "false":
		return CancelInProgress{On: text == "true"}
	}
	return CancelInProgress{Problem: pipelinesascode.CancelInProgress + " is " + strconv.Quote(shown(d.facts.event.Params.Mask(written))) +
		", which is neither true nor false: no run is cancelled"}
}

// Problem is what is not done as an author has written it.
type Problem struct {
	// Reason is one word for it, Says a sentence without its full stop.
	Reason, Says string
}

// Problems are those of the wishes, for people.
func (w Wishes) Problems() (problems []Problem) {
	if w.Keep != nil && w.Keep.Problem != "" {
		problems = append(problems, Problem{"MaxKeepRuns", w.Keep.Problem})
	}
	if w.Cancel.Problem != "" {
		problems = append(problems, Problem{"CancelInProgress", w.Cancel.Problem})
	}
	return problems
}
