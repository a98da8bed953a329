// SPDX-License-Identifier: Apache-2.0

// Package annotations reads what the author of a pipeline says of its other runs: how many that are
// over are kept, and whether a newer one ends older ones.
package annotations

import (
	"strconv"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/config"
)

// Wishes are what an author says of other runs of the pipeline.
type RunPolicy struct {
	// Keep is how many ended runs its author wants to keep, nil if the author says nothing of it.
	Keep *Keep
	// Cancel is whether older runs end; the zero value is no.
	Cancel CancelInProgress
}

// CancelInProgress is whether a run ends older ones of its pipeline, of the same pull request,
// branch or tag.
type CancelInProgress struct {
	On bool
	// Problem says why it does not although its author has written something, "" if that is
	// understood.
	Problem string
}

// Options are what the annotations are read by.
type Options struct {
	Config *config.Config
	// PullRequest is true for runs of a pull request.
	PullRequest bool
	// Words makes what an author has written fit for a message.
	Quote func(written string) string
}

// Read reads the annotations of a PipelineRun.
func Read(annotations map[string]string, o Options) RunPolicy {
	return RunPolicy{Keep: o.keep(annotations), Cancel: o.cancelInProgress(annotations)}
}

// cancelsInProgress reads the annotation cancel-in-progress; where there is none the installation's
// setting counts.
func (o Options) cancelInProgress(annotations map[string]string) CancelInProgress {
	written, found := annotations[pipelinesascode.CancelInProgress]
	switch text := strings.TrimSpace(written); {
	case !found && o.PullRequest:
		return CancelInProgress{On: o.Config.CancelInProgress.PullRequests}
	case !found:
		return CancelInProgress{On: o.Config.CancelInProgress.Pushes}
	case text == "true" || text == "false":
		return CancelInProgress{On: text == "true"}
	}
	return CancelInProgress{Problem: pipelinesascode.CancelInProgress + " is " + strconv.Quote(o.Quote(written)) +
		", which is neither true nor false: no run is cancelled"}
}

// Problem is what is not done as an author has written it.
type Problem struct {
	// Reason is one word for it, Says a sentence without its full stop.
	Reason, Says string
}

// Problems are those of the wishes, for people.
func (w RunPolicy) Problems() (problems []Problem) {
	if w.Keep != nil && w.Keep.Problem != "" {
		problems = append(problems, Problem{"MaxKeepRuns", w.Keep.Problem})
	}
	if w.Cancel.Problem != "" {
		problems = append(problems, Problem{"CancelInProgress", w.Cancel.Problem})
	}
	return problems
}
