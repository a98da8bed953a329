// SPDX-License-Identifier: Apache-2.0

// Package settle is the step that ends an event.
package settle

import (
	"context"
	"errors"
	"slices"
	"time"

	"knative.dev/pkg/logging"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/clients"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/gitauth"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/metrics"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/prune"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// Step takes an event of which nothing is left to do, and gives the stub of it.
type Step struct {
	GitAuth gitauth.Secrets
	Pruning *prune.Step
	// Failing is since when tokens cannot be revoked.
	Failing *Failing
	Metrics *metrics.Metrics
	// Leads is since when this process leads.
	Leads *Tenure
	// Unpatched returns the runs of an event that do not carry yet what the Git service returned.
	Unpatched func(a *attempt.Attempt) []*v1alpha1.Run
}

// PatchLimit is how long an event stays open although all is reported, because patches of its
// PipelineRuns are refused. The sweep goes on with them (docs/adr/0003). SecretLimit is the same
// for the Secrets of its runs, as far as one process knows.
const (
	PatchLimit  = time.Hour
	SecretLimit = time.Hour
)

// New returns a step that has settled nothing yet.
func New(c clients.Cluster, secrets gitauth.Secrets, m *metrics.Metrics, leads *Tenure) *Step {
	return &Step{GitAuth: secrets, Pruning: prune.New(c), Failing: &Failing{}, Metrics: m, Leads: leads}
}

// Do settles the event if nothing is left to do, or if nobody can be told what is left; due is
// false if neither is so, and nothing was done but what no patch of a PipelineRun keeps waiting.
// Idle tells that the steps before have met no fault, except the patches. It is one answer for one
// moment: right after it a report may be worth another attempt, and an event must not be settled
// then as if nothing were left to tell.
func (s *Step) Do(ctx context.Context, a *attempt.Attempt, idle bool) (due bool, err error) {
	switch {
	case unreportable(a):
		return true, s.drop(ctx, a)
	case !idle || !finished(a):
		return false, nil
	}
	unpatched := s.Unpatched(a)
	if len(unpatched) > 0 && !s.leavesPatches(a) {
		return false, a.Waits.Try(backoff.Step{Name: attempt.StepSettle}, func() error { return s.leave(ctx, a) })
	}
	if err := s.Pruning.Do(ctx, a); err != nil {
		return true, err
	}
	if len(unpatched) > 0 {
		logging.FromContext(ctx).Errorw("Patching PipelineRuns is left to the sweep",
			"event", a.Event.Name, "runs", len(unpatched))
	}
	return true, s.finish(ctx, a, left{patches: unpatched})
}

// leavesPatches reports whether patches have been refused for long enough.
func (s *Step) leavesPatches(a *attempt.Attempt) bool {
	wait := a.Waits.Of(v1alpha1.StepAnnotate)
	return wait != nil && a.Clock.Since(wait.Since.Time) >= PatchLimit
}

// left is what a settled event leaves to the sweep: checks without a conclusion, and patches of
// runs.
type left struct {
	open    []v1alpha1.Check
	patches []*v1alpha1.Run
}

// checks are what the stub keeps of the checks: those that are open, and the ids that are still to
// be patched onto PipelineRuns.
func (l left) checks(a *attempt.Attempt) []v1alpha1.Check {
	all := l.open
	for _, run := range l.patches {
		if check := a.Accepted(run.Name); check != nil {
			kept := v1alpha1.Check{Key: check.Key, Name: check.Name, ID: check.ID, Concluded: check.Concluded}
			all = append(all, kept)
		}
	}
	return all
}

// finished reports whether nothing is left to do but to patch runs: every run is refused or over,
// every report accepted.
func finished(a *attempt.Attempt) bool {
	waits := func(w v1alpha1.Wait) bool { // the others are looked at here
		return w.Step != v1alpha1.StepPrune && w.Step != v1alpha1.StepAnnotate
	}
	return a.Decided() && !slices.ContainsFunc(a.Event.Status.Waits, waits) && len(a.Outstanding()) == 0 && a.Over()
}

// finish removes what only an open event needs and settles the event, with what is left of it.
// Every delete may be repeated.
func (s *Step) finish(ctx context.Context, a *attempt.Attempt, left left) error {
	return a.Waits.Try(backoff.Step{Name: attempt.StepSettle}, func() error { return s.tidy(ctx, a, left) })
}

func (s *Step) tidy(ctx context.Context, a *attempt.Attempt, left left) error {
	st := &a.Event.Status
	if st.Plan.Secret != "" ||
		len(st.Runs)+len(st.Plan.Blobs)+int(a.Event.Spec.Payload.Chunks) > 0 { // else only the event is changed
		if err := a.Record.Confirm(ctx); err != nil {
			return err
		}
	}
	if err := s.GitAuth.Delete(ctx, a.Event.Namespace, a.Event.Status.Plan.Secret); err != nil {
		return err
	}
	if err := s.leave(ctx, a); err != nil {
		return err
	}
	if err := a.Kept.Remove(ctx); err != nil {
		return err
	}
	if meantNothing(a.Event) {
		if err := a.Kept.SetSubject(ctx, ""); err != nil {
			return err
		}
	}
	s.Failing.forget(a.Event.Name)
	checks := left.checks(a)
	attempt.Shrink(a.Event, a.Clock.Now(), st.LateSecrets || s.Leads.Inherited(a.Event))
	st.Checks, st.Unreported = checks, len(left.open) > 0
	return a.Record.Write(ctx)
}

// leave is done with the git-auth secrets of the event's runs.
func (s *Step) leave(ctx context.Context, a *attempt.Attempt) error {
	over, revoking := a.Turn(attempt.ShortTurn), &revoking{step: s, a: a}
	for i := range a.Event.Status.Runs {
		run := &a.Event.Status.Runs[i]
		if run.Secret == "" {
			continue
		}
		if err := over(); err != nil {
			return errors.Join(a.Record.Write(ctx), err)
		}
		if err := a.Record.Confirm(ctx); err != nil {
			return err
		}
		revoked, err := revoking.run(ctx, run)
		if err == nil {
			err = again(s.GitAuth.Leave(ctx, a, run, revoked))
			if secretStays(a, err) {
				logging.FromContext(ctx).Errorw("The secret of a run is left to the sweep",
					"event", a.Event.Name, "run", run.Name, "error", err)
				a.Event.Status.LateSecrets, err = true, nil
			}
		}
		if err != nil {
			return err
		}
		run.Secret = "" // recorded when one turn is not enough for all of them
	}
	return nil
}

// again makes the retry of what is refused the workqueue's, whatever refuses it (docs/adr/0003).
func again(err error) error {
	f := fault.Of(err)
	if f == nil || f.Class != fault.Operator {
		return err
	}
	return fault.Transientf(f.Reason, "%s", f.Message)
}

// secretStays reports whether it has failed for long enough to change or delete the secret of a run
// that is over.
func secretStays(a *attempt.Attempt, err error) bool {
	f := fault.Of(err)
	return f != nil && f.Class != fault.Conflict && a.Waits.Failing(backoff.Step{Name: attempt.StepSettle}) >= SecretLimit
}

// meantNothing reports whether no later event is decided by a comment, and no reply tells of it. It
// is not found as one of its pull request then: everybody may write thousands, and what is decided
// there reads all that there are.
func meantNothing(event *v1alpha1.GitEvent) bool {
	return !history.Matters(event) && event.Status.Reply == nil
}
