// SPDX-License-Identifier: Apache-2.0

// Package renew is the step that keeps the secrets of unfinished runs up to date: each run owns its
// secret, and the token in it is fresh.
package renew

import (
	"context"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/gitauth"
)

const (
	// Limit bounds one renewal, so that the steps after it have their time.
	Limit = 10 * time.Second
	// stepLimit is how long the step goes on to the next run. The call for the last run may take
	// the rest of Limit.
	stepLimit = 5 * time.Second
	// latest is how long a renewal waits at most after a failure: an outage may end shortly before
	// the token does.
	latest = 2 * time.Minute
)

// Step makes unfinished runs owners of their secrets, and gives them fresh tokens before the old
// ones expire. Nothing waits for this step, and no report mentions it.
type Step struct{ GitAuth gitauth.Secrets }

// Do renews before the token in a secret expires: a pod may clone late in a long run. The token of
// one run does not delay another run, which was just created, in becoming the owner of its secret.
func (s *Step) Do(ctx context.Context, a *attempt.Attempt) error {
	defer wake(a)
	runs, untried := due(a)
	if len(runs) == 0 {
		return untried
	}
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	renewal := s.GitAuth.Renewal(a)
	exceeded := a.TimeLimit(stepLimit) // the runs that are left have half of their token's life to be renewed in
	faults := attempt.Each(ctx, runs, func(context.Context) error { return exceeded() },
		func(ctx context.Context, run *v1alpha1.Run) error {
			serve := func() error {
				return a.Waits.WithBackoff(renewed(run), func() error {
					got, err := renewal.Serve(ctx, run)
					apply(run, got)
					return soon(err)
				})
			}
			if gitauth.Old(run, a.Clock.Now()) {
				return a.Waits.IfDue(v1alpha1.StepRenew, serve)
			}
			return serve()
		})
	return attempt.Merge(append([]error{untried}, faults...))
}

// apply records what has changed about a run's secret.
func apply(run *v1alpha1.Run, got gitauth.Renewed) {
	run.SecretOwned = run.SecretOwned || got.Owned
	if got.At != nil {
		run.SecretRenewAt = got.At
	}
}

// soon makes a failed renewal be tried again after latest at most.
func soon(err error) error {
	if err == nil || !backoff.Retried(err) {
		return err
	}
	return fault.Among(err, fault.Throttledf(fault.ReasonBusy, latest, "the token ends"))
}

// renewed names the renewal of one run's secret.
func renewed(run *v1alpha1.Run) backoff.Step {
	return backoff.Step{Name: v1alpha1.StepRenew, Of: run.Name}
}

// mounts reports whether pods of the run may still need its secret.
func mounts(run *v1alpha1.Run) bool { return run.Secret != "" && run.UID != "" && run.Result == nil }

// needs reports whether a run's secret needs an owner or a fresh token now.
func needs(run *v1alpha1.Run, now time.Time) bool {
	return mounts(run) && (!run.SecretOwned || gitauth.Old(run, now))
}

// due returns the runs whose secrets need something, and an error that stands for those that have
// just failed.
func due(a *attempt.Attempt) (runs []*v1alpha1.Run, untried error) {
	for i := range a.Event.Status.Runs {
		run := &a.Event.Status.Runs[i]
		if !needs(run, a.Clock.Now()) {
			continue
		}
		if err := a.Waits.BackingOff(renewed(run)); err != nil {
			untried = err
			continue
		}
		runs = append(runs, run)
	}
	return runs, untried
}

// wake enqueues the event for the next renewal. It does so in addition to what the reconcile
// returns: the backoff of another step must not delay the renewal, and a reconcile without errors
// must count as a success.
func wake(a *attempt.Attempt) {
	if left := next(a.Event.Status.Runs, a.Clock.Now()); left > 0 {
		a.Wake(left)
	}
}

// next returns the time until the first renewal of a run, 0 if there is none. A renewal that is due
// has just failed, and its error requeues the event.
func next(runs []v1alpha1.Run, now time.Time) (left time.Duration) {
	for i := range runs {
		run := &runs[i]
		if !mounts(run) || run.SecretRenewAt == nil || !run.SecretRenewAt.After(now) {
			continue
		}
		if l := run.SecretRenewAt.Sub(now); left == 0 || l < left {
			left = l
		}
	}
	return left
}
