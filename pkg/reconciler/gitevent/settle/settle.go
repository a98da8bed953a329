// SPDX-License-Identifier: Apache-2.0

// Package settle is the step that ends an event.
package settle

import (
	"context"
	"errors"
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/attempt"
	"github.com/plumbline-ci/plumbline/pkg/cluster"
	"github.com/plumbline-ci/plumbline/pkg/gitauth"
	"github.com/plumbline-ci/plumbline/pkg/metrics"
	"github.com/plumbline-ci/plumbline/pkg/pruning"
	"github.com/plumbline-ci/plumbline/pkg/retry"
)

// Step takes an event of which nothing is left to do, and gives the stub of it.
type Step struct {
	GitAuth gitauth.Secrets
	Pruning *pruning.Step
	// Failing is since when tokens cannot be revoked.
	Failing *Failing
	Metrics *metrics.Metrics
	// Leads is since when this process leads.
	Leads *Tenure
}

// New returns a step that has settled nothing yet.
func New(c cluster.Cluster, secrets gitauth.Secrets, m *metrics.Metrics, leads *Tenure) *Step {
	return &Step{GitAuth: secrets, Pruning: pruning.New(c), Failing: &Failing{}, Metrics: m, Leads: leads}
}

// Do settles the event if nothing is left to do, or if nobody can be told what is left; due is false if neither is so, and
// nothing was done. Idle tells that the steps before have met no fault. It is one answer for one moment: right after it a
// report may be worth another attempt, and an event must not be settled then as if nothing were left to tell.
func (s *Step) Do(ctx context.Context, a *attempt.Attempt, idle bool) (due bool, err error) {
	switch {
	case unreportable(a):
		return true, s.drop(ctx, a)
	case idle && finished(a):
		if err := s.Pruning.Do(ctx, a); err != nil {
			return true, err
		}
		return true, s.finish(ctx, a, nil)
	}
	return false, nil
}

// finished tells whether nothing is left to do: every run is refused or over, every report accepted. Every run is patched when
// no step has met a fault.
func finished(a *attempt.Attempt) bool {
	waits := func(w v1alpha1.Wait) bool { return w.Step != v1alpha1.StepPrune } // that is this step's
	return a.Decided() && !slices.ContainsFunc(a.Event.Status.Waits, waits) && len(a.Outstanding()) == 0 && a.Over()
}

// finish removes what only an open event needs and settles the event, with the checks that are left open. Every delete may be repeated.
func (s *Step) finish(ctx context.Context, a *attempt.Attempt, left []v1alpha1.Check) error {
	return a.Waits.Try(retry.Step{Name: attempt.StepSettle}, func() error { return s.tidy(ctx, a, left) })
}

func (s *Step) tidy(ctx context.Context, a *attempt.Attempt, left []v1alpha1.Check) error {
	st := &a.Event.Status
	if st.Plan.Secret != "" || len(st.Runs)+len(st.Plan.Blobs)+int(a.Event.Spec.Payload.Chunks) > 0 { // else only the event is changed
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
		if err := a.Kept.About(ctx, ""); err != nil {
			return err
		}
	}
	s.Failing.forget(a.Event.Name)
	attempt.Shrink(a.Event, a.Clock.Now(), s.Leads.Inherited(a.Event))
	a.Event.Status.Checks, a.Event.Status.Unreported = left, len(left) > 0
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
			err = s.GitAuth.Leave(ctx, a, run, revoked)
		}
		if err != nil {
			return err
		}
		run.Secret = "" // recorded when one turn is not enough for all of them
	}
	return nil
}

// meantNothing tells whether nobody has to know of a comment any more: it did nothing, and nobody was told. It is not found as one of its
// pull request then: strangers may write thousands, and what is decided there reads all that there are.
func meantNothing(event *v1alpha1.GitEvent) bool {
	st := &event.Status
	return event.Spec.Comment != nil && st.Disposition == v1alpha1.DispositionIgnored && st.Reply == nil && st.Plan.Cancels == nil
}
