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
	Prune   *prune.Step
	// Failing is since when tokens cannot be revoked.
	Failing *RevocationFailures
	Metrics *metrics.Metrics
	// Leads is since when this process leads.
	Leadership *Leadership
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
func New(c clients.Cluster, secrets gitauth.Secrets, m *metrics.Metrics, leads *Leadership) *Step {
	return &Step{GitAuth: secrets, Prune: prune.New(c), Failing: &RevocationFailures{}, Metrics: m, Leadership: leads}
}

// Do settles the event if nothing is left to do, or if nobody can be told what is left; due is
// false if neither is so, and nothing was done but what no patch of a PipelineRun keeps waiting.
// Idle tells that the steps before have met no fault, except the patches. It is one answer for one
// moment: right after it a report may be worth another attempt, and an event must not be settled
// then as if nothing were left to tell.
func (s *Step) Do(ctx context.Context, a *attempt.Attempt, idle bool) (due bool, err error) {
	switch {
	case unreportable(a):
		return true, s.giveUpReports(ctx, a)
	case !idle || !finished(a):
		return false, nil
	}
	unpatched := s.Unpatched(a)
	if len(unpatched) > 0 && !s.leavesPatches(a) {
		return false, a.Waits.WithBackoff(backoff.Step{Name: attempt.StepSettle}, func() error { return s.releaseSecrets(ctx, a) })
	}
	if err := s.Prune.Do(ctx, a); err != nil {
		return true, err
	}
	if len(unpatched) > 0 {
		logging.FromContext(ctx).Errorw("Patching PipelineRuns is left to the sweep",
			"event", a.Event.Name, "runs", len(unpatched))
	}
	return true, s.finish(ctx, a, leftover{patches: unpatched})
}

// leavesPatches reports whether patches have been refused for long enough.
func (s *Step) leavesPatches(a *attempt.Attempt) bool {
	wait := a.Waits.Of(v1alpha1.StepAnnotate)
	return wait != nil && a.Clock.Since(wait.Since.Time) >= PatchLimit
}

// left is what a settled event leaves to the sweep: checks without a conclusion, and patches of
// runs.
type leftover struct {
	open    []v1alpha1.Check
	patches []*v1alpha1.Run
}

// checks are what the stub keeps of the checks: those that are open, and the ids that are still to
// be patched onto PipelineRuns.
func (l leftover) checks(a *attempt.Attempt) []v1alpha1.Check {
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
	return a.Decided() && !slices.ContainsFunc(a.Event.Status.Waits, waits) && len(a.Outstanding()) == 0 && a.Finished()
}

// finish removes what only an open event needs and settles the event, with what is left of it.
// Every delete may be repeated.
func (s *Step) finish(ctx context.Context, a *attempt.Attempt, left leftover) error {
	return a.Waits.WithBackoff(backoff.Step{Name: attempt.StepSettle}, func() error { return s.cleanUp(ctx, a, left) })
}

func (s *Step) cleanUp(ctx context.Context, a *attempt.Attempt, left leftover) error {
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
	if err := s.releaseSecrets(ctx, a); err != nil {
		return err
	}
	if err := a.StoredPlan.Remove(ctx); err != nil {
		return err
	}
	if irrelevant(a.Event) {
		if err := a.StoredPlan.About(ctx, ""); err != nil {
			return err
		}
	}
	s.Failing.forget(a.Event.Name)
	checks := left.checks(a)
	attempt.Shrink(a.Event, a.Clock.Now(), st.LateSecrets || s.Leadership.Inherited(a.Event))
	st.Checks, st.Unreported = checks, len(left.open) > 0
	return a.Record.Write(ctx)
}

// leave is done with the git-auth secrets of the event's runs.
func (s *Step) releaseSecrets(ctx context.Context, a *attempt.Attempt) error {
	exceeded, revoking := a.TimeLimit(attempt.ShortLimit), &revoking{step: s, a: a}
	proceed := func(ctx context.Context) error {
		if err := exceeded(); err != nil {
			return errors.Join(a.Record.Write(ctx), err)
		}
		return a.Record.Confirm(ctx)
	}
	return attempt.Merge(attempt.Each(ctx, withSecrets(&a.Event.Status), proceed,
		func(ctx context.Context, run *v1alpha1.Run) error {
			revoked, err := revoking.run(ctx, run)
			if err != nil {
				return attempt.Stop(err)
			}
			err = again(s.GitAuth.Release(ctx, a, run, revoked))
			if secretStays(err, a.Waits.FailingFor(backoff.Step{Name: attempt.StepSettle})) {
				logging.FromContext(ctx).Errorw("The secret of a run is left to the sweep",
					"event", a.Event.Name, "run", run.Name, "error", err)
				a.Event.Status.LateSecrets, err = true, nil
			}
			if err != nil {
				return attempt.Stop(err)
			}
			run.Secret = "" // recorded if one reconcile has no time for all of them
			return nil
		}))
}

// withSecrets returns the runs whose git-auth secrets the event still needs.
func withSecrets(s *v1alpha1.GitEventStatus) (runs []*v1alpha1.Run) {
	for i := range s.Runs {
		if run := &s.Runs[i]; run.Secret != "" {
			runs = append(runs, run)
		}
	}
	return runs
}

// again makes the retry of what is refused the workqueue's, whatever refuses it (docs/adr/0003).
func again(err error) error {
	f := fault.Of(err)
	if f == nil || f.Class != fault.Operator {
		return err
	}
	return fault.Transientf(f.Reason, "%s", f.Message)
}

// secretStays reports whether changing or deleting the secret of a finished run has failed for so
// long that the event does not wait for it any more.
func secretStays(err error, failing time.Duration) bool {
	f := fault.Of(err)
	return f != nil && f.Class != fault.Conflict && failing >= SecretLimit
}

// meantNothing reports whether no later event is decided by a comment, and no reply tells of it. It
// is not found as one of its pull request then: everybody may write thousands, and what is decided
// there reads all that there are.
func irrelevant(event *v1alpha1.GitEvent) bool {
	return !history.Matters(event) && event.Status.Reply == nil
}
