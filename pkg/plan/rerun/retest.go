// SPDX-License-Identifier: Apache-2.0

package rerun

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// PaC reads PipelineRuns that Pipelines-as-Code has started, the newest last.
type PaC func(ctx context.Context, of history.PaCRunsOf) ([]history.PaCRun, error)

// PaCRunsOf returns which of PaC's PipelineRuns belong to the pull request of an event, or to its
// branch or tag; of one commit, or with an empty sha of all.
func PaCRunsOf(repository string, spec *v1alpha1.GitEventSpec, sha string) history.PaCRunsOf {
	of := history.PaCRunsOf{Repository: repository, SHA: sha, Ref: spec.BaseRef}
	if spec.PullRequest != nil {
		of.Pull = spec.PullRequest.Number
	}
	return of
}

// Retest decides what a command without names does not start again.
type Retest struct {
	// Read returns the history of the commit, also with an error. PaC reads Of, which
	// Pipelines-as-Code has started for it; nil if there are none. Each is called at most once.
	Read func(ctx context.Context) (*History, error)
	PaC  PaC
	Of   history.PaCRunsOf
	// Skipped is how many pipelines are not started again.
	Skipped int

	history *History
	pac     []history.PaCRun
	// askedPaC is true once PaC was called.
	askedPaC    bool
	err, pacErr error
}

// WhySkipped returns why a pipeline is not started again, "" if it is started. A pipeline that no
// record of Plumbline names may have run before the move from Pipelines-as-Code.
func (r *Retest) WhySkipped(ctx context.Context, pipeline string) (string, error) {
	if r.history == nil {
		r.history, r.err = r.Read(ctx)
	}
	if r.err != nil {
		return "", r.err
	}
	why := r.history.WhySkipped(pipeline)
	if why == "" && r.history.latest[pipeline] == nil {
		if !r.askedPaC && r.PaC != nil {
			r.pac, r.pacErr = r.PaC(ctx, r.Of)
			r.askedPaC = true
		}
		why = whySkippedByPaC(r.pac, pipeline)
	}
	if why != "" {
		r.Skipped++
	}
	return why, r.pacErr
}

// whySkippedByPaC is History.WhySkipped for PipelineRuns of Pipelines-as-Code. A user of the
// namespace who forges one can only keep a command from starting a pipeline there: the commit's
// checks stay as they are, and /retest NAME starts it.
func whySkippedByPaC(runs []history.PaCRun, pipeline string) string {
	var latest *history.PaCRun
	for i := range runs {
		run := &runs[i]
		if resources.SamePipeline(run.Pipeline, pipeline) && (latest == nil || latest.Finished) {
			latest = run
		}
	}
	switch {
	case latest == nil:
		return ""
	case !latest.Finished:
		return fmt.Sprintf("its latest run on this commit, %s of Pipelines-as-Code, is not finished", latest.Name)
	case latest.Succeeded:
		return fmt.Sprintf("its latest run on this commit, %s of Pipelines-as-Code, succeeded", latest.Name)
	}
	return ""
}

// maxLeft is how many PipelineRuns LeftToPaC names.
const maxLeft = 5

// LeftToPaC says which unfinished PipelineRuns of Pipelines-as-Code a /cancel does not cancel; ""
// if there are none. names are the pipelines that the command names, none for all.
func LeftToPaC(
	ctx context.Context, pac PaC, repository string, spec *v1alpha1.GitEventSpec, names []string,
) (string, error) {
	if pac == nil {
		return "", nil
	}
	sha := ""
	if spec.PullRequest == nil {
		sha = spec.SHA
	}
	runs, err := pac(ctx, PaCRunsOf(repository, spec, sha))
	if err != nil {
		return "", err
	}
	var left []string
	for _, run := range runs {
		named := func(name string) bool { return resources.SamePipeline(name, run.Pipeline) }
		if !run.Finished && (len(names) == 0 || slices.ContainsFunc(names, named)) {
			left = append(left, run.Name)
		}
	}
	if len(left) == 0 {
		return "", nil
	}
	return "Pipelines-as-Code started these before the move, and they are not cancelled: " +
		text.Some(left, maxLeft, ", ") + ". To cancel one, run tkn pipelinerun cancel NAME.", nil
}

// StartedBy reports whether an event has started a pipeline, if it happened after a moment.
func StartedBy(all []history.Record, event string, after time.Time, pipeline string) bool {
	return slices.ContainsFunc(all, func(r history.Record) bool {
		return r.Event.Name == event && after.Before(r.Event.Happened()) &&
			slices.ContainsFunc(r.Event.Status.Runs, func(run v1alpha1.Run) bool {
				return run.Pipeline == pipeline && !run.Skipped()
			})
	})
}
