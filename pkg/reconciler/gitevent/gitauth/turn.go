// SPDX-License-Identifier: Apache-2.0

package gitauth

import (
	"context"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

// Turn looks after the secrets of an event's runs that go on, one after the other. What the Git
// service has just refused it is not asked for again: each run that needs a token fails with that.
type Turn struct {
	secrets Secrets
	a       *attempt.Attempt
	refused error
}

// Turn begins one.
func (s Secrets) Turn(a *attempt.Attempt) *Turn { return &Turn{secrets: s, a: a} }

// Serve makes a run an owner of its secret. One whose token is old, or that somebody has deleted,
// gets a fresh token.
func (t *Turn) Serve(ctx context.Context, run *v1alpha1.Run) error {
	if err := t.a.Record.Confirm(ctx); err != nil {
		return err
	}
	if !Old(t.a, run) {
		if there, err := t.secrets.Own(ctx, run); there || err != nil {
			return err
		}
	}
	if t.refused != nil {
		return t.refused
	}
	fresh, err := t.secrets.Mint(ctx, t.a, run)
	if err != nil {
		t.refused = err
		return err
	}
	return t.secrets.Renew(ctx, t.a, run, fresh)
}

// Old reports whether the token of a run's secret is to be replaced.
func Old(a *attempt.Attempt, run *v1alpha1.Run) bool {
	return run.SecretRenewAt == nil || !a.Clock.Now().Before(run.SecretRenewAt.Time)
}
