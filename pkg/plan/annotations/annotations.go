// SPDX-License-Identifier: Apache-2.0

// Package annotations reads what the author of a pipeline says about its other runs: how many
// finished ones are kept, whether a newer run cancels older ones, and how many follow a run that
// the cluster made fail.
package annotations

import (
	"strconv"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/config"
)

// RunPolicy is what an author says about other runs of the pipeline.
type RunPolicy struct {
	// Keep is how many finished runs are kept, nil if the author does not say.
	Keep *Keep
	// Cancel says whether a run cancels older ones; the zero value is no.
	Cancel CancelInProgress
	// Retries says how many times a run that the cluster made fail is repeated.
	Retries Retries
}

// CancelInProgress says whether a run cancels older runs of the same pipeline and pull request,
// branch or tag.
type CancelInProgress struct {
	On bool
	// Problem says why it is off although the annotation is set, "" if the annotation is valid.
	Problem string
}

// Options are what the annotations are read with.
type Options struct {
	Config *config.Config
	// PullRequest is true for runs of a pull request.
	PullRequest bool
	// Quote makes an author's text fit for a message.
	Quote func(written string) string
}

// Read reads the annotations of a PipelineRun.
func Read(annotations map[string]string, o Options) RunPolicy {
	return RunPolicy{
		Keep: o.keep(annotations), Cancel: o.cancelInProgress(annotations), Retries: o.retries(annotations),
	}
}

// cancelInProgress reads the annotation cancel-in-progress. Without it the installation's setting
// applies.
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

// Problem says what is not done as an author has written it.
type Problem struct {
	// Reason is one word for it, Says a sentence without a full stop.
	Reason, Says string
}

// Problems returns the problems for people.
func (w RunPolicy) Problems() (problems []Problem) {
	if w.Keep != nil && w.Keep.Problem != "" {
		problems = append(problems, Problem{"MaxKeepRuns", w.Keep.Problem})
	}
	if w.Cancel.Problem != "" {
		problems = append(problems, Problem{"CancelInProgress", w.Cancel.Problem})
	}
	if w.Retries.Problem != "" {
		problems = append(problems, Problem{"InfrastructureRetries", w.Retries.Problem})
	}
	return problems
}
