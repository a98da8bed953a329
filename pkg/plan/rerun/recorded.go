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

// PaC's event types for runs, and so for re-runs, of a pull request and of a push.
const (
	pullEvent = "pull_request"
	pushEvent = "push"
)

// Target is what a re-run request is about.
type Target struct {
	// pull is the number of the pull request, 0 for a push.
	pull int64
	// push is the event of the push, nil if it is not on record.
	push *v1alpha1.GitEventSpec
	// Pipelines are the pipelines that run again, by the names in their definitions. nil means all
	// that match the event.
	Pipelines []string
	// Running has the newest unfinished run of each pipeline, which does not run again.
	Running map[string]string
	// Ran is true if a run of the commit was created before, which a user must have allowed.
	Ran bool
	// Unrecorded is true if nothing is on record.
	Unrecorded bool
}

// Complete completes an event's spec from the records. The rest of a pull request is read later. An
// Ignored fault means that nothing says what the check belongs to.
func (r *Target) Complete(spec *v1alpha1.GitEventSpec) error {
	switch {
	case r.pull != 0:
		spec.Trigger, spec.EventType = v1alpha1.TriggerPullRequest, pullEvent
		spec.PullRequest = &v1alpha1.PullRequest{Number: r.pull}
	case r.push != nil:
		spec.Trigger, spec.EventType = r.push.Trigger, r.push.EventType
		spec.BaseRef, spec.HeadRef, spec.HeadURL = r.push.BaseRef, r.push.HeadRef, r.push.HeadURL
		spec.Before, spec.Commit, spec.Incoming = r.push.Before, r.push.Commit, r.push.Incoming
	case spec.BaseRef == "":
		return fault.Ignoredf(reasonUnknownCheck,
			"The check is not on record, and GitHub names neither branch nor pull request for its commit.")
	}
	return nil
}

// ofCommit returns the records of a commit. A re-run request without runs does not count, because
// it started nothing or is not planned yet.
func ofCommit(list []history.Record, sha string) []history.Record {
	return slices.DeleteFunc(slices.Clone(list), func(r history.Record) bool {
		return r.SHA() != sha || r.Event.Spec.Rerun != nil && len(r.Event.Status.Runs) == 0
	})
}

// findCheck searches for the run or event that a check reports.
func findCheck(list []history.Record, externalID string) *Target {
	for _, record := range list {
		event := record.Event
		if event.Name == externalID {
			return target(list, event, "", nil)
		}
		for i := range event.Status.Runs {
			if run := &event.Status.Runs[i]; run.Key() == externalID {
				name := definedName(event, run)
				return target(list, event, name, []string{name})
			}
		}
	}
	return nil
}

// latestRun is the newest run of a pipeline on a commit.
type latestRun struct {
	event *v1alpha1.GitEvent
	run   *v1alpha1.Run
	name  string
	// ref is the pushed ref, empty for a pull request.
	ref string
}

// running reports whether the run is unfinished. A run of an event that was given up counts as
// finished.
func (l *latestRun) running() bool {
	return l.run.Refused == nil && l.run.Result == nil && !l.event.Settled()
}

func (l *latestRun) failed() bool {
	return !l.running() && (l.run.Result == nil || l.run.Result.Outcome != v1alpha1.OutcomeSucceeded)
}

// noteRunning sets the pipelines that are running now, for the ref that runs again.
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

// findAll returns the pipelines whose newest run did not succeed, or all if each succeeded: a user
// who requests all checks of a green commit wants them to run. A pipeline that is running is left
// out, and the commit does not count as green yet. One event has one ref: that of the newest run.
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

// findEvent returns the newest event with a check but without runs: it was skipped, or waits for
// approval.
func findEvent(list []history.Record) *Target {
	for _, record := range slices.Backward(list) {
		if d := record.Event.Status.Disposition; d == v1alpha1.DispositionSkipped || d == v1alpha1.DispositionPending {
			return target(list, record.Event, "", nil)
		}
	}
	return nil
}

// newestRuns returns the newest run of each pipeline, in the order of receipt. An unfinished run
// counts as newer than all finished ones, because an event that was received first may be planned
// last.
func newestRuns(list []history.Record) []latestRun {
	var newest []latestRun
	for _, record := range list {
		for i := range record.Event.Status.Runs {
			run := &record.Event.Status.Runs[i]
			if run.Skipped() {
				continue // no PipelineRun was planned
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

// target returns the re-run of pipelines that a recorded event has started. If the check was about
// the whole directory, everything that matches runs.
func target(list []history.Record, event *v1alpha1.GitEvent, pipeline string, pipelines []string) *Target {
	again := &Target{push: pushOf(list, event, pipeline), Pipelines: pipelines}
	if slices.Contains(pipelines, pipelinesascode.Definitions) {
		again.Pipelines = nil
	}
	for _, record := range list {
		again.Ran = again.Ran ||
			slices.ContainsFunc(record.Event.Status.Runs, func(run v1alpha1.Run) bool { return run.Started() })
	}
	return again
}

// pushOf returns the push whose pipeline an event has run: its own, or the one that it re-runs; nil
// if none is on record.
func pushOf(list []history.Record, event *v1alpha1.GitEvent, pipeline string) *v1alpha1.GitEventSpec {
	for range list { // a re-run may be of a re-run
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
				slices.ContainsFunc(runs, func(run v1alpha1.Run) bool { return run.Key() == again.ExternalID })
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
	if push.Comment != nil { // a command on the commit runs what a push runs
		push.BaseRef, push.HeadRef, push.EventType = ref, ref, pushEvent
	}
	return push
}

// definedName returns the name of a pipeline in its file. A run is named after it with the
// placeholders replaced.
func definedName(event *v1alpha1.GitEvent, run *v1alpha1.Run) string {
	if plan := event.Status.Plan; plan != nil {
		for _, d := range plan.Decisions {
			if resources.RunName(event.Name, d.File, d.Document, strings.TrimSuffix(d.Pipeline, "-")) == run.Key() {
				return d.Pipeline
			}
		}
	}
	return run.Pipeline
}

// findIn returns the target from the records of one subject, nil if they do not say. wanted is
// false if everything succeeded; then another subject is preferred.
func findIn(list []history.Record, asked *v1alpha1.Rerun) (again *Target, wanted bool) {
	if asked.All {
		return findAll(list)
	}
	again = findCheck(list, asked.ExternalID)
	return again, again != nil
}
