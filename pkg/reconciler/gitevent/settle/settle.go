// SPDX-License-Identifier: Apache-2.0

// Package settle is the step that settles an event.
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
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/gitauth"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/metrics"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/prune"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// Step turns an event of which nothing is left to do into a stub.
type Step struct {
	GitAuth gitauth.Secrets
	Prune   *prune.Step
	Metrics *metrics.Metrics
	// Leadership is since when this process leads.
	Leadership *Leadership
	// Unpatched returns the runs of an event that do not carry yet what the Git service returned.
	Unpatched func(a *attempt.Attempt) []*v1alpha1.Run

	// unrevoked is since when the tokens of events cannot be revoked, as far as this process knows.
	unrevoked recent.Map[string, time.Time]
}

// PatchLimit is how long an event stays unsettled although everything is reported, because patches
// of its PipelineRuns are refused. The sweep continues with them (docs/adr/0003). SecretLimit is
// the same for the Secrets of its runs, as far as one process knows.
const (
	PatchLimit  = time.Hour
	SecretLimit = time.Hour
)

// Do settles the event if nothing is left to do, or if the rest cannot be reported. due is false if
// neither is true; then it has done only what patches do not delay. idle is true if the steps
// before had no error, except the patches. All of this is decided once, at one moment: a moment
// later a report may be due again, and an event must not be settled as if nothing were left to
// report.
func (s *Step) Do(ctx context.Context, a *attempt.Attempt, idle bool) (due bool, err error) {
	switch {
	case unreportable(a):
		return true, s.giveUpReports(ctx, a)
	case !idle || !finished(a):
		return false, nil
	}
	unpatched := s.Unpatched(a)
	if len(unpatched) > 0 && !leavesPatches(a.Waits.Of(v1alpha1.StepAnnotate), a.Clock.Now()) {
		return false, a.Waits.WithBackoff(backoff.Step{Name: attempt.StepSettle},
			func() error { return s.releaseSecrets(ctx, a) })
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

// leavesPatches reports whether patches have been refused for so long that the sweep takes them
// over. wait is the recorded wait for them.
func leavesPatches(wait *v1alpha1.Wait, now time.Time) bool {
	return wait != nil && now.Sub(wait.Since.Time) >= PatchLimit
}

// leftover is what a settled event leaves to the sweep: checks without a conclusion, and patches of
// runs.
type leftover struct {
	open    []v1alpha1.Check
	patches []*v1alpha1.Run
}

// checks returns what the stub keeps of the checks: those without a conclusion, and the IDs that
// must still be patched onto PipelineRuns.
func (l leftover) checks(a *attempt.Attempt) []v1alpha1.Check {
	all := l.open
	for _, run := range l.patches {
		if check := a.Accepted(run.Key()); check != nil {
			kept := v1alpha1.Check{Key: check.Key, Name: check.Name, ID: check.ID, Concluded: check.Concluded}
			all = append(all, kept)
		}
	}
	return all
}

// finished reports whether nothing is left to do but to patch runs: every run is refused or
// finished, every report accepted.
func finished(a *attempt.Attempt) bool {
	waits := func(w v1alpha1.Wait) bool { // settle decides about the others itself
		return w.Step != v1alpha1.StepPrune && w.Step != v1alpha1.StepAnnotate
	}
	return a.Decided() && !slices.ContainsFunc(a.Event.Status.Waits, waits) && len(a.Outstanding()) == 0 && a.Finished()
}

// finish removes what only an unsettled event needs, and settles the event with what is left of it.
// Every deletion may be repeated.
func (s *Step) finish(ctx context.Context, a *attempt.Attempt, left leftover) error {
	return a.Waits.WithBackoff(backoff.Step{Name: attempt.StepSettle}, func() error { return s.cleanUp(ctx, a, left) })
}

func (s *Step) cleanUp(ctx context.Context, a *attempt.Attempt, left leftover) error {
	st := &a.Event.Status
	if st.Plan.Secret != "" ||
		len(st.Runs)+len(st.Plan.Blobs)+int(a.Event.Spec.Payload.Chunks) > 0 { // otherwise only the event is changed
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
		if err := a.StoredPlan.SetSubject(ctx, ""); err != nil {
			return err
		}
	}
	s.unrevoked.Delete(a.Event.Name)
	checks := left.checks(a)
	attempt.Shrink(a.Event, a.Clock.Now(), st.LateSecrets || s.Leadership.Inherited(a.Event))
	st.Checks, st.Unreported = checks, len(left.open) > 0
	return a.Record.Write(ctx)
}

// releaseSecrets revokes the tokens in the git-auth secrets of the event's runs, and leaves the
// secrets to the runs.
func (s *Step) releaseSecrets(ctx context.Context, a *attempt.Attempt) error {
	exceeded, expire := a.TimeLimit(attempt.ShortLimit), false
	proceed := func(ctx context.Context) error {
		if err := exceeded(); err != nil {
			return errors.Join(a.Record.Write(ctx), err)
		}
		return a.Record.Confirm(ctx)
	}
	return attempt.Merge(attempt.Each(ctx, withSecrets(&a.Event.Status), proceed,
		func(ctx context.Context, run *v1alpha1.Run) error {
			had, left, err := s.revoke(ctx, a, run, expire)
			if err != nil {
				return attempt.Stop(err)
			}
			expire = expire || left
			err = again(s.GitAuth.Release(ctx, a, run, had))
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

// again has the workqueue retry what an operator must fix.
func again(err error) error {
	if f := fault.Of(err); f != nil && f.Class == fault.Operator {
		return f.AsTransient()
	}
	return err
}

// secretStays reports whether changing or deleting the secret of a finished run has failed for so
// long that the event does not wait for it any more.
func secretStays(err error, failing time.Duration) bool {
	f := fault.Of(err)
	return f != nil && f.Class != fault.Conflict && failing >= SecretLimit
}

// irrelevant reports whether no later event is decided by a comment, and no reply mentions it. Such
// a comment is not found as one of its pull request any more: everybody may write thousands, and
// decisions about the pull request read all of them.
func irrelevant(event *v1alpha1.GitEvent) bool {
	return !history.Matters(event) && event.Status.Reply == nil
}
