// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"fmt"
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/pkg/statuslimit"
)

// report sends what the Git service has not accepted yet. What it sends is computed from the status alone, which holds
// no error that arose after a PipelineRun was created.
func (r *Reconciler) report(ctx context.Context, w *work) error {
	statuslimit.Fit(&w.event.Status) // what is sent is what is stored
	stale, untried := w.stale()
	if len(stale) == 0 {
		return untried
	}
	for i := range stale {
		w.intend(w.check(&stale[i]))
	}
	// One write before anything is sent: it stores what was created and how runs ended, and of two processes that both
	// believe to lead only one can pass it.
	if err := w.record(ctx); err != nil {
		return err
	}
	client, failed := w.session.Connect(ctx)
	spec := &w.event.Spec
	head := git.Head{SHA: w.event.Status.Plan.HeadSHA, Project: spec.Project, Ref: spec.HeadRef, PullRequest: spec.PullRequest}
	faults := []error{untried}
	over := w.turn(shortTurn)
	for _, check := range inTurn(w.wait(stepReport) != nil, stale) {
		if err := over(); err != nil && failed == nil {
			return first(append(faults, err))
		}
		err := w.try(reported(&check), func() error {
			if failed != nil { // with each check: none of them is sent before the next login
				return failed
			}
			return w.traced(ctx, stepReport, func(ctx context.Context) error { return r.put(ctx, w, client, head, &check) })
		})
		faults = append(faults, err)
		if f := fault.Of(err); f != nil && f.Class != fault.Transient && !skipped(err) {
			break // the next one would meet the same limit or the same closed door
		}
	}
	return first(faults)
}

// stale are the checks to send now, and what stands for those that have just failed.
func (w *work) stale() (checks []status.Check, untried error) {
	for _, check := range slices.DeleteFunc(append(w.outstanding(), w.rechecks()...), w.untried) {
		if err := w.failedJustNow(reported(&check)); err != nil {
			untried = err
			continue
		}
		checks = append(checks, check)
	}
	return checks, untried
}

func (r *Reconciler) put(ctx context.Context, w *work, client *provider.Client, head git.Head, check *status.Check) error {
	if err := w.paused(); err != nil {
		return err
	}
	traceReport(ctx, check)
	accepted := w.check(check)
	matters := w.lateMatters(accepted)
	id, err := client.Put(ctx, head, accepted.ID, *check)
	if id != "" {
		accepted.ID = id // also when only a duplicate could not be closed
	}
	if err != nil {
		if matters && fault.Of(err).Unknown {
			w.mayLand(accepted)
		}
		return fmt.Errorf("reporting %q: %w", check.Name, err)
	}
	r.metrics.accepted(ctx, w.event, *accepted, check, r.clock.Now()) // by what was accepted until now
	accepted.Accepted, accepted.Concluded = status.Digest(*check), check.Conclusion != ""
	if accepted.Concluded && accepted.RecheckAt != nil && !w.r.clock.Now().Before(accepted.RecheckAt.Time) {
		accepted.RecheckAt = nil // Put looked for duplicates when none could be under way any more
	}
	return nil
}

// outstanding is what the Git service should show minus what it has accepted.
func (w *work) outstanding() []status.Check {
	return status.Stale(w.desired(), w.event.Status.Checks)
}

// untried tells that a check is about a run whose turn to be created has not come: in a moment there is more to say.
func (w *work) untried(check status.Check) bool {
	for i := range w.event.Status.Runs {
		if run := &w.event.Status.Runs[i]; run.Name == check.Key {
			return creatable(run) && w.wait(stepCreate+run.Name) == nil
		}
	}
	return false
}

func (w *work) desired() []status.Check {
	in := status.Input{Application: w.config.ApplicationName, Event: w.event}
	for _, run := range w.event.Status.Runs {
		in.Runs = append(in.Runs, status.RunState{
			Run: run, PipelineRun: w.live[run.Name], Links: w.config.Console.Links(run.Namespace, run.Name), Wait: w.wait(stepCreate + run.Name),
		})
	}
	return status.Desired(in)
}

// check returns the record of a check, made on first use. Its name is the one that was sent last.
func (w *work) check(check *status.Check) *v1alpha1.Check {
	if found := w.accepted(check.Key); found != nil {
		found.Name = check.Name
		return found
	}
	w.event.Status.Checks = append(w.event.Status.Checks, v1alpha1.Check{Key: check.Key, Name: check.Name})
	return &w.event.Status.Checks[len(w.event.Status.Checks)-1]
}

func (w *work) accepted(key string) *v1alpha1.Check {
	for i := range w.event.Status.Checks {
		if w.event.Status.Checks[i].Key == key {
			return &w.event.Status.Checks[i]
		}
	}
	return nil
}
