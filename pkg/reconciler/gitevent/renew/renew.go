// SPDX-License-Identifier: Apache-2.0

// Package renew is the step that looks after the secrets of runs that go on: each is its run's own,
// and its token is fresh.
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

// Limit bounds one renewal, so that the steps after it have their time.
const Limit = 10 * time.Second

// turn is how long tokens are minted for one run after the other; the call of the last may take the
// rest of Limit.
const turn = 5 * time.Second

// Step takes the runs that go on and do not own their secrets yet, or whose token ends before they
// do. It makes them owners, and gives their secrets fresh tokens and them new times. Nothing waits
// for it, and no report tells of it.
type Step struct{ GitAuth gitauth.Secrets }

// Do renews before the token in a secret expires: a pod may clone late in a long run. A run that
// was just created does not wait to own its secret for what another one's token waits for.
func (s *Step) Do(ctx context.Context, a *attempt.Attempt) error {
	defer wake(a)
	runs, untried := due(a)
	if len(runs) == 0 {
		return untried
	}
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	faults, secrets := []error{untried}, s.GitAuth.Turn(a)
	over := a.Turn(turn)
	for _, run := range runs {
		if err := over(); err != nil {
			faults = append(faults, err) // those that are left have half of their token's life to be renewed in
			break
		}
		serve := func() error {
			return a.Waits.Try(renewed(run), func() error { return soon(secrets.Serve(ctx, run)) })
		}
		if gitauth.Old(a, run) {
			faults = append(faults, a.Waits.Due(v1alpha1.StepRenew, serve))
		} else {
			faults = append(faults, serve())
		}
	}
	return attempt.First(faults)
}

// latest is how long a renewal waits at most after one that failed: an outage may be over shortly
// before the token is.
const latest = 2 * time.Minute

// soon is the error of a renewal that is tried again by the latest time.
func soon(err error) error {
	if err == nil || !backoff.Retried(err) {
		return err
	}
	return fault.Among(err, fault.Throttledf(fault.ReasonBusy, latest, "the token ends"))
}

// renewed is the step of renewing one run's secret.
func renewed(run *v1alpha1.Run) backoff.Step {
	return backoff.Step{Name: v1alpha1.StepRenew, Of: run.Name}
}

// mounts reports whether pods of the run may still need its secret.
func mounts(run *v1alpha1.Run) bool { return run.Secret != "" && run.UID != "" && run.Result == nil }

// due are the runs whose secrets are to get an owner or a fresh token now, and what stands for
// those where that has just failed.
func due(a *attempt.Attempt) (runs []*v1alpha1.Run, untried error) {
	for i := range a.Event.Status.Runs {
		run := &a.Event.Status.Runs[i]
		if !mounts(run) || run.SecretOwned && !gitauth.Old(a, run) {
			continue
		}
		if err := a.Waits.FailedJustNow(renewed(run)); err != nil {
			untried = err
			continue
		}
		runs = append(runs, run)
	}
	return runs, untried
}

// wake makes the queue come back for the next renewal. It does so beside the reconcile's outcome:
// the backoff of another step must not delay it, and a reconcile in which all went well must count
// as one.
func wake(a *attempt.Attempt) {
	now := a.Clock.Now()
	var next time.Duration
	for i := range a.Event.Status.Runs {
		run := &a.Event.Status.Runs[i]
		if !mounts(run) || run.SecretRenewAt == nil || !run.SecretRenewAt.After(now) {
			continue // what is due has just failed, and its error brings us back
		}
		if left := run.SecretRenewAt.Sub(now); next == 0 || left < next {
			next = left
		}
	}
	if next > 0 {
		a.Wake(next)
	}
}
