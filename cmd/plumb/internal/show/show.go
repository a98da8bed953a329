// SPDX-License-Identifier: Apache-2.0

// Package show writes the plan of an event: as a table, as PipelineRuns or as JSON, and with the
// mistakes that authors have to fix.
package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/caret"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/planning"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/plan"
)

// Starts says whether a pipeline starts.
type Starts string

// The answers. Unknown means that it depends on something that plumb cannot know.
const (
	Yes     Starts = "yes"
	No      Starts = "no"
	Unknown Starts = "unknown"
)

// Row is one pipeline.
type Row struct {
	Pipeline string `json:"pipeline"`
	File     string `json:"file,omitempty"`
	Document int    `json:"document,omitempty"`
	Starts   Starts `json:"starts"`
	// Why is the sentence that the controller writes to GitEvent.status.
	Why string `json:"why"`
	// PipelineRun is set if the pipeline starts.
	PipelineRun *Name `json:"pipelineRun,omitempty"`
	// Error is the mistake that the author has to fix.
	Error *Error `json:"error,omitempty"`
}

// Name names an object.
type Name struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Error is a mistake of an author.
type Error struct {
	caret.Place
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Report is the plan of an event.
type Report struct {
	Event       Event                `json:"event"`
	Disposition v1alpha1.Disposition `json:"disposition"`
	Reason      string               `json:"reason,omitempty"`
	Message     string               `json:"message,omitempty"`
	// Cancels are the runs that the event cancels.
	Cancels   *v1alpha1.Cancellation `json:"cancels,omitempty"`
	Pipelines []Row                  `json:"pipelines"`
	// Warnings are about fields that do not exist, and about what has no effect.
	Warnings []Error  `json:"warnings,omitempty"`
	Assumed  []string `json:"assumed,omitempty"`

	headline string
	sources  *caret.Sources
	runs     []planned
}

// Event is the event of the plan.
type Event struct {
	// Name is the GitEvent's.
	Name       string `json:"name,omitempty"`
	Service    string `json:"service,omitempty"`
	Repository string `json:"repository,omitempty"`
	Trigger    string `json:"trigger,omitempty"`
	Type       string `json:"type,omitempty"`
	Action     string `json:"action,omitempty"`
	SHA        string `json:"sha,omitempty"`
	Before     string `json:"before,omitempty"`
	Base       string `json:"base,omitempty"`
	Head       string `json:"head,omitempty"`
	Sender     string `json:"sender,omitempty"`
	// PullRequest is the number of a pull or merge request.
	PullRequest int64 `json:"pullRequest,omitempty"`
	// ChangedFiles and Uncommitted count the changed files, as far as they are known.
	ChangedFiles int `json:"changedFiles,omitempty"`
	Uncommitted  int `json:"uncommittedFiles,omitempty"`
}

// reasonRefused is the reason of a PipelineRun that would not be created; the others are those of
// warnings.
const (
	reasonRefused      = "WouldBeRefused"
	reasonUnknownField = "UnknownField"
	reasonNoEffect     = "NoEffect"
)

// Of returns the report of a plan.
func Of(result *planning.Result) (*Report, error) {
	made, spec := result.Plan, result.Plan.Spec
	r := &Report{
		Event: Event{
			Name:       result.Event,
			Service:    spec.Provider,
			Repository: spec.Project.URL,
			Trigger:    string(spec.Trigger),
			Type:       spec.EventType,
			Action:     spec.Action,
			SHA:        cmp.Or(made.HeadSHA, spec.SHA),
			Before:     spec.Before,
			Base:       spec.BaseRef,
			Head:       spec.HeadRef,
			Sender:     spec.Sender,
		},
		Disposition: made.Disposition, Reason: made.Reason, Message: made.Message, Cancels: made.Cancels,
		Pipelines: []Row{}, Assumed: result.Assumed,
		headline: headline(result), sources: caret.Read(result.Files),
	}
	if result.Changed != nil {
		r.Event.ChangedFiles, r.Event.Uncommitted = result.Changed.Count, result.Changed.Uncommitted
	}
	if spec.PullRequest != nil {
		r.Event.PullRequest = spec.PullRequest.Number
	}
	runs := map[string]*plan.Run{}
	for i := range made.Runs {
		runs[made.Runs[i].Name] = &made.Runs[i]
	}
	for _, decision := range made.Decisions {
		name := planning.RunName(result.Event, decision)
		r.Pipelines = append(r.Pipelines, r.row(decision, runs[name]))
		delete(runs, name)
	}
	for i := range made.Runs { // what is said of the directory as a whole belongs to no definition
		if run := &made.Runs[i]; runs[run.Name] != nil {
			r.Pipelines = append(r.Pipelines, r.row(v1alpha1.Decision{File: run.Pipeline, Pipeline: run.Pipeline}, run))
		}
	}
	for _, field := range r.sources.Unknown() {
		r.Warnings = append(r.Warnings, Error{
			Place: r.sources.FieldAt(field.File, field.Line, field.Path), Reason: reasonUnknownField,
			Message: "the field " + field.Path + " does not exist, so it is ignored",
		})
	}
	for _, warning := range r.sources.Lint(result.Scope) {
		r.Warnings = append(r.Warnings, Error{Place: warning.Place, Reason: reasonNoEffect, Message: warning.Says})
	}
	slices.SortStableFunc(r.Warnings, func(a, b Error) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return r, r.reveal(made, result.Reveal)
}

// Ignored returns the report of an event that is never planned.
func Ignored(repository, why string) *Report {
	return &Report{
		Event: Event{Repository: repository}, Disposition: v1alpha1.DispositionIgnored, Message: why, Pipelines: []Row{},
		sources: caret.Read(nil),
	}
}

func (r *Report) row(decision v1alpha1.Decision, run *plan.Run) Row {
	row := Row{
		Pipeline: decision.Pipeline,
		File:     decision.File,
		Document: decision.Document,
		Starts:   No,
		Why:      decision.Reason,
	}
	if run != nil {
		row.Pipeline = run.Pipeline
	}
	switch {
	case decision.Open:
		row.Starts = Unknown
	case run == nil, run.Unmatched():
	case run.Refused != nil:
		row.Why = run.Refused.Message
		row.Error = &Error{
			Place:   r.sources.Find(decision.File, decision.Document, run.Refused.Message),
			Reason:  run.Refused.Reason,
			Message: run.Refused.Message,
		}
	default:
		row.Starts, row.PipelineRun = Yes, &Name{Namespace: run.Namespace, Name: run.Name}
	}
	return row
}

// planned is a PipelineRun that is to be created.
type planned struct {
	// shown has placeholders instead of secrets. Each of guesses has another value for all secrets:
	// a mistake that only one of them has is not a mistake of the PipelineRun.
	shown   *pipelinev1.PipelineRun
	guesses []*pipelinev1.PipelineRun
}

// reveal reads the PipelineRuns, with placeholders and with guesses for their secrets.
func (r *Report) reveal(made *plan.Plan, secrets map[string]string) error {
	for i := range made.Runs {
		if made.Runs[i].Manifest == nil {
			continue
		}
		shown, err := filled(made.Runs[i], secrets)
		if err != nil {
			return err
		}
		run := planned{shown: shown}
		for _, value := range []string{"x", "1"} {
			guess, err := filled(made.Runs[i], guessed(secrets, value))
			if err != nil {
				return err
			}
			run.guesses = append(run.guesses, guess)
		}
		r.runs = append(r.runs, run)
	}
	return nil
}

// Failed reports whether an author has to fix something, or a command cannot be carried out as it
// is written.
func (r *Report) Failed() bool {
	if r.Mistaken() {
		return true
	}
	for _, row := range r.Pipelines {
		if row.Error != nil {
			return true
		}
	}
	return false
}

// Mistaken reports whether a command cannot be carried out as it is written.
func (r *Report) Mistaken() bool {
	ending := plan.Ending{Disposition: r.Disposition, Reason: r.Reason}
	return ending.InvalidCommand()
}

// MustStart returns a sentence for each name without a pipeline that would start.
func (r *Report) MustStart(names []string) []string {
	var complaints []string
	for _, name := range names {
		if why, starts := r.starts(name); !starts {
			complaints = append(complaints, fmt.Sprintf("%s would not start: %s", oneLine(name), oneLine(why)))
		}
	}
	return complaints
}

// starts reports whether a pipeline of the name starts, or why the first one of that name does not.
func (r *Report) starts(name string) (why string, starts bool) {
	var known []string
	for _, row := range r.Pipelines {
		known = append(known, row.Pipeline)
		switch {
		case row.Pipeline != name:
		case row.Starts == Yes:
			return "", true
		case row.Starts == Unknown:
			why = cmp.Or(why, "it is unknown here ("+strings.TrimPrefix(row.Why, "waiting: ")+")")
		default:
			why = cmp.Or(why, row.why())
		}
	}
	switch {
	case why != "":
		return why, false
	case len(known) == 0:
		return r.Message, false
	}
	return "no pipeline has that name (all: " + strings.Join(known, ", ") + ")", false
}
