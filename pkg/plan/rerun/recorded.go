// SPDX-License-Identifier: Apache-2.0

package rerun

import (
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// PaC's event types of a pull request's runs and of a push's, and so of their re-runs.
const (
	pullEvent = "pull_request"
	pushEvent = "push"
)

// Found is what a press of a re-run button is about.
type Target struct {
	// pull is the number of the pull request, 0 for a push.
	pull int64
	// push is the event of the push, nil if it is not on record.
	push *v1alpha1.GitEventSpec
	// Pipelines are what runs again, by the names that their authors wrote; nil is whatever is for
	// the event by its annotations.
	Pipelines []string
	// Running is the newest run of each pipeline that is not over: it is left alone.
	Running map[string]string
	// Ran is true if a run of the commit was created before, which somebody must have allowed.
	Ran bool
	// Unrecorded is true if no record tells any of that.
	Unrecorded bool
}

// Describe completes an event's spec as far as records tell. The rest of a pull request is asked
// for. An Ignored fault says that nothing tells what the check is of.
func (r *Target) Complete(spec *v1alpha1.GitEventSpec) error {
	switch {
	case r.pull != 0:
		spec.Trigger, spec.EventType = v1alpha1.TriggerPullRequest, pullEvent
		spec.PullRequest = &v1alpha1.PullRequest{Number: r.pull}
	case r.push != nil:
		spec.Trigger, spec.EventType = v1alpha1.TriggerPush, r.push.EventType
		spec.BaseRef, spec.HeadRef, spec.HeadURL, spec.Before, spec.Commit = r.push.BaseRef, r.push.HeadRef, r.push.HeadURL, r.push.Before, r.push.Commit
	case spec.BaseRef == "":
		return fault.Ignoredf(
			"UnknownCheck",
			"Nothing is on record of the check, and GitHub names neither branch nor pull request for its commit.",
		)
	}
	return nil
}

// of are the records about a commit. A press that started nothing says nothing, nor does one that
// is not planned yet.
func ofCommit(list []history.Record, sha string) []history.Record {
	return slices.DeleteFunc(slices.Clone(list), func(r history.Record) bool {
		return r.SHA() != sha || r.Event.Spec.Rerun != nil && len(r.Event.Status.Runs) == 0
	})
}

// findCheck looks for the run or the event that a check reports on.
func findCheck(list []history.Record, externalID string) *Target {
	for _, record := range list {
		event := record.Event
		if event.Name == externalID {
			return target(list, event, "", nil)
		}
		for i := range event.Status.Runs {
			if run := &event.Status.Runs[i]; run.Name == externalID {
				name := definedName(event, run)
				return target(list, event, name, []string{name})
			}
		}
	}
	return nil
}

// last is the newest run of a pipeline on a commit.
type latestRun struct {
	event *v1alpha1.GitEvent
	run   *v1alpha1.Run
	name  string
	// ref is what was pushed to, of a push.
	ref string
}

// running reports whether the run is not over. That of an event that gave up is, although nobody
// knows how it ended.
func (l *latestRun) running() bool {
	return l.run.Refused == nil && l.run.Result == nil && !l.event.Settled()
}

func (l *latestRun) failed() bool {
	return !l.running() && (l.run.Result == nil || l.run.Result.Outcome != v1alpha1.OutcomeSucceeded)
}

// run notes which pipelines run now, of the ref that is to run again.
func (r *Target) noteRunning(list []history.Record) {
	ref := ""
	if r.push != nil {
		ref = r.push.BaseRef
	}
	r.Running = map[string]string{}
	for _, l := range newestRuns(list) {
		if l.running() && l.ref == ref {
			r.Running[l.name] = l.run.Name
		}
	}
}

// findAll takes the pipelines whose newest run did not succeed, or all of them if each did: whoever
// presses "Re-run all checks" on a green commit wants them to run. What runs now is left alone, and
// nobody knows yet whether it is green. One event is of one ref: that of the newest run counts.
func findAll(list []history.Record) (again *Target, failed bool) {
	newest := newestRuns(list)
	if len(newest) == 0 {
		return findEvent(list), false
	}
	newestOf := newest[len(newest)-1]
	wanted := slices.DeleteFunc(slices.Clone(newest), func(l latestRun) bool { return !l.failed() })
	if failed = len(wanted) > 0; !failed {
		if slices.ContainsFunc(newest, func(l latestRun) bool { return l.running() }) {
			return target(list, newestOf.event, newestOf.name, []string{}), false
		}
		wanted = newest
	}
	lead := wanted[len(wanted)-1]
	names := []string{}
	for _, l := range wanted {
		if l.ref == lead.ref {
			names = append(names, l.name)
		}
	}
	return target(list, lead.event, lead.name, names), failed
}

// findEvent takes the newest event that has a check and no runs: it was skipped, or waits for
// approval.
func findEvent(list []history.Record) *Target {
	for _, record := range slices.Backward(list) {
		if d := record.Event.Status.Disposition; d == v1alpha1.DispositionSkipped || d == v1alpha1.DispositionPending {
			return target(list, record.Event, "", nil)
		}
	}
	return nil
}

// newestRuns are the newest run of each pipeline, in the order in which they were received. One
// that is not over is newer than all that are: what is received first may be planned last.
func newestRuns(list []history.Record) []latestRun {
	var newest []latestRun
	for _, record := range list {
		for i := range record.Event.Status.Runs {
			run := &record.Event.Status.Runs[i]
			if run.Result != nil && run.Result.Outcome == v1alpha1.OutcomeSkipped {
				continue // it has shown what was waited for
			}
			one := latestRun{event: record.Event, run: run, name: definedName(record.Event, run)}
			if push := pushOf(list, record.Event, one.name); push != nil {
				one.ref = push.BaseRef
			}
			before := slices.IndexFunc(newest, func(l latestRun) bool { return l.name == one.name && l.ref == one.ref })
			if before >= 0 && newest[before].running() {
				continue
			}
			if before >= 0 {
				newest = slices.Delete(newest, before, before+1)
			}
			newest = append(newest, one)
		}
	}
	return newest
}

// found is the re-run of pipelines that a recorded event has started. What is wrong with the whole
// directory is looked at as a whole.
func target(list []history.Record, event *v1alpha1.GitEvent, pipeline string, pipelines []string) *Target {
	again := &Target{push: pushOf(list, event, pipeline), Pipelines: pipelines}
	if slices.Contains(pipelines, pipelinesascode.Definitions) {
		again.Pipelines = nil
	}
	for _, record := range list {
		again.Ran = again.Ran ||
			slices.ContainsFunc(record.Event.Status.Runs, func(run v1alpha1.Run) bool { return run.UID != "" })
	}
	return again
}

// pushOf is the push whose pipeline an event has run: its own, or that of which it is a re-run. nil
// if none is on record.
func pushOf(list []history.Record, event *v1alpha1.GitEvent, pipeline string) *v1alpha1.GitEventSpec {
	for range list { // a re-run may be one of a re-run
		again := event.Spec.Rerun
		if again == nil {
			break
		}
		i := slices.IndexFunc(list, func(r history.Record) bool {
			runs := r.Event.Status.Runs
			if again.All {
				return r.Event.Spec.Rerun == nil &&
					slices.ContainsFunc(runs, func(run v1alpha1.Run) bool { return definedName(r.Event, &run) == pipeline })
			}
			return r.Event.Name == again.ExternalID ||
				slices.ContainsFunc(runs, func(run v1alpha1.Run) bool { return run.Name == again.ExternalID })
		})
		if i < 0 {
			return nil
		}
		event = list[i].Event
	}
	ref := event.GitRef()
	if event.Spec.Rerun != nil || ref == "" {
		return nil
	}
	push := event.Spec.DeepCopy()
	if push.Comment != nil { // a command on the commit has run what a push had
		push.BaseRef, push.HeadRef, push.EventType = ref, ref, pushEvent
	}
	return push
}

// written is what a pipeline is called in its file: a run is named after it with its placeholders
// replaced.
func definedName(event *v1alpha1.GitEvent, run *v1alpha1.Run) string {
	if plan := event.Status.Plan; plan != nil {
		for _, d := range plan.Decisions {
			if resources.RunName(event.Name, d.File, d.Document, strings.TrimSuffix(d.Pipeline, "-")) == run.Name {
				return d.Pipeline
			}
		}
	}
	return run.Pipeline
}

// findIn is what is to run again by the records of one subject, nil if they do not tell. Wanted is
// false if it succeeded, so that another subject's comes first.
func findIn(list []history.Record, asked *v1alpha1.Rerun) (again *Target, wanted bool) {
	if asked.All {
		return findAll(list)
	}
	again = findCheck(list, asked.ExternalID)
	return again, again != nil
}
