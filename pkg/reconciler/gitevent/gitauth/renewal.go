// SPDX-License-Identifier: Apache-2.0

package gitauth

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

// Renewal keeps the secrets of an event's unfinished runs up to date, one after the other. Once the
// Git service has refused a token it is not asked again: each later run that needs a token gets the
// same error.
type Renewal struct {
	secrets Secrets
	a       *attempt.Attempt
	refused error
}

// Renewed is what has changed about the secret of a run.
type Renewed struct {
	// Owned is true if the PipelineRun is an owner of the secret now.
	Owned bool
	// At is when the secret's fresh token must be renewed, nil if the secret has no fresh token.
	At *metav1.Time
}

// Renewal returns one for the runs of an attempt.
func (s Secrets) Renewal(a *attempt.Attempt) *Renewal { return &Renewal{secrets: s, a: a} }

// Serve makes a run an owner of its secret. A run whose token is old, or whose secret was deleted,
// gets a fresh token.
func (r *Renewal) Serve(ctx context.Context, run *v1alpha1.Run) (Renewed, error) {
	if err := r.a.Record.Confirm(ctx); err != nil {
		return Renewed{}, err
	}
	if !Old(run, r.a.Clock.Now()) {
		if there, err := r.secrets.Own(ctx, run); there || err != nil {
			return Renewed{Owned: there}, err
		}
	}
	if r.refused != nil {
		return Renewed{}, r.refused
	}
	fresh, err := r.secrets.Mint(ctx, r.a, run)
	if err != nil {
		r.refused = err
		return Renewed{}, err
	}
	at, err := r.secrets.Renew(ctx, r.a, run, fresh)
	return Renewed{Owned: err == nil, At: at}, err
}

// Old reports whether the token of a run's secret must be renewed.
func Old(run *v1alpha1.Run, now time.Time) bool {
	return run.SecretRenewAt == nil || !now.Before(run.SecretRenewAt.Time)
}
