// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"context"
	"time"

	"knative.dev/pkg/logging"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/gitauth"
)

// RevokeLimit is how long an event stays unsettled because the tokens of its runs cannot be
// revoked. After that the tokens expire by themselves: GitHub's live for an hour.
const RevokeLimit = 2 * time.Minute

// revoking revokes the tokens of an event's runs, until that is given up.
type revoking struct {
	step    *Step
	a       *attempt.Attempt
	givenUp bool
}

// run revokes the tokens of one run, and reports whether it may have had any. It returns an error
// as long as that must be retried.
func (r *revoking) run(ctx context.Context, run *v1alpha1.Run) (had bool, err error) {
	tokens, err := r.step.GitAuth.Tokens(ctx, r.a, run)
	if err == nil && len(tokens) == 0 {
		return false, nil
	}
	if err == nil && !r.givenUp {
		err = gitauth.Revoke(ctx, r.a, tokens)
		if err == nil {
			return true, nil
		}
	}
	if err != nil && !r.givenUp && r.waits(fault.Of(err)) {
		return true, err
	}
	r.givenUp = true
	fields := []any{"event", r.a.Event.Name, "run", run.Name}
	if f := fault.Of(err); f != nil {
		fields = append(fields, "reason", f.Reason)
	}
	logging.FromContext(ctx).Warnw("The token of a run is not revoked; it ends by itself", fields...)
	r.step.Metrics.Unrevoked(ctx)
	return true, nil
}

// waits reports whether another attempt may help within RevokeLimit. A problem that an operator
// must fix, or a longer rate limit, is not worth an unsettled event.
func (r *revoking) waits(f *fault.Error) bool {
	if f.Reason == fault.ReasonBusy {
		return true // the Git service was not asked: the event waits for its slot
	}
	now := r.a.Clock.Now()
	since := r.step.unrevoked.GetOrCreate(r.a.Event.Name, func() time.Time { return now })
	left := since.Add(RevokeLimit).Sub(now)
	return f.Class != fault.Operator && f.Class != fault.Invalid && f.RetryAfter < left
}
