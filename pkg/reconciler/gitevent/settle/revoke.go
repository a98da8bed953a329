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

// revoke revokes the tokens of one run, unless leave is true because another run's were left. It
// reports whether the run may have had any, and whether they are left to expire by themselves. It
// returns an error as long as that must be retried.
func (s *Step) revoke(
	ctx context.Context, a *attempt.Attempt, run *v1alpha1.Run, leave bool,
) (had, left bool, err error) {
	tokens, err := s.GitAuth.Tokens(ctx, a, run)
	if err == nil && len(tokens) == 0 {
		return false, false, nil
	}
	if err == nil && !leave {
		if err = gitauth.Revoke(ctx, a, tokens); err == nil {
			return true, false, nil
		}
	}
	if !leave && s.retries(a, fault.Of(err)) {
		return true, false, err
	}
	fields := []any{"event", a.Event.Name, "run", run.Name}
	if f := fault.Of(err); f != nil {
		fields = append(fields, "reason", f.Reason)
	}
	logging.FromContext(ctx).Warnw("The token of a run is not revoked; it expires by itself", fields...)
	s.Metrics.Unrevoked(ctx)
	return true, true, nil
}

// retries reports whether a failed revocation is retried. The first failure starts the time, unless
// the Git service was not asked because the event waits for its slot.
func (s *Step) retries(a *attempt.Attempt, f *fault.Error) bool {
	if f.Reason == fault.ReasonBusy {
		return true
	}
	now := a.Clock.Now()
	since := s.unrevoked.GetOrCreate(a.Event.Name, func() time.Time { return now })
	return mayHelp(f, since.Add(RevokeLimit).Sub(now))
}

// mayHelp reports whether another attempt may help in the time that is left. A problem that an
// operator must fix, or a longer rate limit, is not worth an unsettled event.
func mayHelp(f *fault.Error, left time.Duration) bool {
	return f.Class != fault.Operator && f.Class != fault.Invalid && f.RetryAfter < left
}
