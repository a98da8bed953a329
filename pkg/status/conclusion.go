// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Links lead to a PipelineRun at a console. All of them are empty if none is configured.
type Links struct {
	// ConsoleName is what people call the console.
	ConsoleName string
	// Run and Namespace are URLs.
	Run, Namespace string
	// Archive is the URL of the run in Tekton Results; empty if there is none.
	Archive string
	// Task returns the URL of a pipeline task's log, or "". It may be nil.
	Task func(TaskLink) string
	// Other returns the URL of another PipelineRun of the namespace. It is nil if no console is
	// configured.
	Other func(pipelineRun string) string
}

// TaskLink is what the link to a task depends on. Pod and FailedStep may be empty.
type TaskLink struct{ Name, Pod, FailedStep string }

// RunState is one planned PipelineRun and what is known of it now.
type RunState struct {
	Run v1alpha1.Run
	// PipelineRun is nil when it is unknown or does not exist. Its terminal state is not read:
	// Run.Result has it, and is stored before it is reported.
	PipelineRun *pipelinev1.PipelineRun
	Links       Links
	// Wait is why the PipelineRun is not created yet, if that is known.
	Wait *v1alpha1.Wait
	// CancelRefused is why the last request to cancel the PipelineRun failed, if there was one.
	CancelRefused *v1alpha1.Wait
}

// Input has everything that a conclusion may depend on. Of the errors that arose after a
// PipelineRun was created it has only a refused cancellation, which changes the text of a check and
// never its conclusion.
type Input struct {
	// Application is the name that checks begin with. A check that exists under another name keeps
	// it.
	Application string
	Event       *v1alpha1.GitEvent
	// Runs are the event's runs, in the order of its status.
	Runs []RunState
}

// Desired returns what the Git service should show: one check for each run, or the event's own
// check while it waits for approval; and the end of that check if another event's waited. It is the
// only place where a conclusion is made (the verdict rule of the architecture):
//
//   - the terminal state of the PipelineRun, as it is;
//   - else, if the PipelineRun exists: in progress, whatever fails around it;
//   - else, if the author's text was refused before or at creation: failure, with the words of the
//     refusal;
//   - else: queued, with a text that says what it waits for.
//
// A PipelineRun that exists outweighs a refusal. A create may have succeeded although its answer
// was lost; when it is repeated, admission checks it again, and that refusal means nothing.
func Desired(in Input) []Check {
	switch in.Event.Status.Disposition {
	case v1alpha1.DispositionIgnored, v1alpha1.DispositionSuperseded, v1alpha1.DispositionCancels:
		return append(ending(in), waited(in)...)
	case v1alpha1.DispositionPending:
		return []Check{pending(in.begun(EventKey, ""))}
	case v1alpha1.DispositionSkipped:
		return []Check{skipped(in.begun(EventKey, ""))}
	case v1alpha1.DispositionRefused:
		return closing(in)
	}
	checks := ending(in)
	for _, run := range in.Runs {
		checks = append(checks, in.begun(run.Run.Key(), run.Run.Pipeline).run(run))
	}
	return checks
}

// conclusionOf returns the conclusion of a terminal state. An outcome that it does not know was
// written by another version of Plumbline and has no conclusion: the check stays pending.
func conclusionOf(r *v1alpha1.Result) Conclusion {
	if r == nil {
		return ""
	}
	switch r.Outcome {
	case v1alpha1.OutcomeSucceeded:
		return Success
	case v1alpha1.OutcomeFailed:
		return Failure
	case v1alpha1.OutcomeCancelled, v1alpha1.OutcomeDeleted:
		return Cancelled
	case v1alpha1.OutcomeSkipped:
		return Skipped
	}
	return ""
}

// waited returns the checks that showed what the event waited for, concluded.
func waited(in Input) (checks []Check) {
	for _, run := range in.Runs {
		if conclusionOf(run.Run.Result) == Skipped {
			checks = append(checks, in.begun(run.Run.Key(), run.Run.Pipeline).run(run))
		}
	}
	return checks
}

func (in Input) run(run RunState) Check {
	c := Check{
		Key:        run.Run.Key(),
		Name:       in.Application + " / " + run.Run.Pipeline,
		ExternalID: run.Run.Key(),
		DetailsURL: run.Links.Run,
	}
	if run.Run.Pipeline == "" {
		c.Name = in.Application
	}
	switch {
	case conclusionOf(run.Run.Result) != "":
		in.ended(&c, run)
	case run.Run.UID != "":
		in.started(&c, run)
	case run.Run.Refused != nil:
		in.refused(&c, run)
	default:
		in.waiting(&c, run)
	}
	if run.Run.Attempt() > 1 {
		in.attempts(&c, run)
	}
	if run.Run.Note != "" {
		c.Text += "\n\n" + plain(run.Run.Note)
	}
	return c
}

// begun returns the input with the application name under which the check was created. Under a new
// name, a Git service that identifies checks by name would show a second check, and the first would
// stay pending.
func (in Input) begun(key, pipeline string) Input {
	for _, c := range in.Event.Status.Checks {
		if c.Key != key || c.Name == "" {
			continue
		}
		if pipeline == "" {
			in.Application = c.Name
		} else if application, same := strings.CutSuffix(c.Name, " / "+pipeline); same {
			in.Application = application
		}
	}
	return in
}

// closing returns the checks of an event that can no longer be processed: those that exist, each
// with a conclusion, and the results of finished runs. It makes no check for a run that will never
// exist.
func closing(in Input) []Check {
	checks := ending(in)
	for _, run := range in.Runs {
		if run.Run.Result == nil && !seen(in.Event, run.Run.Key()) {
			continue
		}
		in := in.begun(run.Run.Key(), run.Run.Pipeline)
		c := in.run(run)
		if c.State != Completed {
			in.conclude(&c, run.Run.Pipeline, Cancelled)
			c.Text = why(in.Event)
		}
		checks = append(checks, c)
	}
	if plan := in.Event.Status.Plan; seen(in.Event, EventKey) && (plan == nil || !plan.EndsPending) {
		in := in.begun(EventKey, "")
		c := pending(in)
		in.conclude(&c, "", Cancelled)
		c.Text = why(in.Event)
		checks = append(checks, c)
	}
	return checks
}

func why(event *v1alpha1.GitEvent) string {
	if event.Status.Plan == nil {
		return textUnserved + "."
	}
	return textUnserved + ": " + code(cmp.Or(event.Status.Plan.Message, event.Status.Plan.Reason))
}

// seen reports whether the check exists at the Git service, or may exist there.
func seen(event *v1alpha1.GitEvent, key string) bool {
	for _, c := range event.Status.Checks {
		if c.Key == key {
			return c.Intent || c.ID != "" || c.Accepted != ""
		}
	}
	return false
}
