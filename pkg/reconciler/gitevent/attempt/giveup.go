// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/store/plans"
)

const (
	// lagLimit is how long a Git service may take to show what its webhook has reported (G10), and
	// a controller to claim a URL. After that, a commit or a claim is polled slowly, and what the
	// service does not confirm is not accepted.
	lagLimit = 10 * time.Minute
	// minWait is how long an event must have waited for one thing before it is given up because of
	// its age. After an outage of days, what is wrong may still be fixed.
	minWait = time.Hour
)

// Reasons of the Git services' packages: an answer that is not what was asked for
// (provider.ReasonBadAnswer), a pull request that is not shown, and one whose files are not listed
// yet.
const (
	reasonBadAnswer   = "BadAnswer"
	reasonNoPull      = "PullRequestUnknown"
	reasonNotPrepared = "MergeRequestNotPrepared"
)

// ReasonPanic is the reason of the wait of an event whose processing panics.
const ReasonPanic = "Panic"

// ReasonGivenUp is the reason of the Kubernetes Event about an event that is given up, and of its
// runs that are not created.
const ReasonGivenUp = "GivenUp"

// SlowDown slows down the retries of a step that waits for something a replica may not have yet,
// once no replica lags that much.
func (w *Waits) SlowDown(step string, err error) error {
	f, before := fault.Of(err), w.Of(step)
	if f == nil || f.Class != fault.Transient || !mayLag(f.Reason) || before == nil || before.Reason != f.Reason ||
		w.state.Clock.Since(before.Since.Time) < lagLimit {
		return err
	}
	return fault.Throttledf(f.Reason, w.state.operatorRetry(), "%s", f.Message)
}

func mayLag(reason string) bool {
	return reason == fault.ReasonCommitUnknown || reason == fault.ReasonNotConfirmed || reason == fault.ReasonNotClaimedYet
}

// ShouldGiveUp reports whether waiting is pointless. One of these must be true:
//   - the Git service has said twice, OperatorRetry apart, that the App is no longer installed (G8)
//   - it has not confirmed what the delivery says for longer than a replica lags (S11)
//   - the event is too old to wait for an operator, a commit, a claim or room for its plan (S5)
func (w *Waits) ShouldGiveUp(wait *v1alpha1.Wait) bool {
	retry, latest := w.state.operatorRetry(), w.lastActivity()
	if wait == nil || wait.NotBefore == nil ||
		w.state.Clock.Since(wait.NotBefore.Time) >= retry { // the attempt is too long ago: the cause may be gone
		return false
	}
	met := wait.NotBefore.Add(-retry).Sub(wait.Since.Time) // from the first to the last attempt with this reason
	switch {
	case wait.Reason == fault.ReasonInstallationGone:
		return met >= retry
	case wait.Reason == fault.ReasonNotConfirmed:
		return met >= lagLimit
	case wait.Class == fault.Operator.String() && wait.Reason != ReasonPanic,
		wait.Reason == fault.ReasonCommitUnknown,
		wait.Reason == fault.ReasonNotClaimedYet,
		plans.OverBudget(wait.Reason):
		return met >= minWait && !latest.IsZero() && w.state.Clock.Since(latest) >= w.config.MaxWait()
	}
	return false
}

// ReasonDecided is the reason of the result of a run that stood for an undecided plan.
const ReasonDecided = "Decided"

// FromGitService reports whether a Transient fault with this reason may come from a Git service
// that refuses one request and serves others.
func FromGitService(reason string) bool {
	switch reason {
	case fault.ReasonGitUnavailable, fault.ReasonGitUnreachable, fault.ReasonTimeout,
		reasonBadAnswer, reasonNoPull, reasonNotPrepared:
		return true
	}
	return false
}

// TooOld reports whether the Git service refuses something, and the event is too old to wait for
// anything. The caller finds out for how long, and that the service is not down as a whole: an
// event waits until an outage ends.
func (w *Waits) TooOld(wait *v1alpha1.Wait) bool {
	latest := w.lastActivity()
	if wait == nil || wait.Class != fault.Transient.String() || !FromGitService(wait.Reason) || latest.IsZero() {
		return false
	}
	return w.state.Clock.Since(latest) >= w.config.MaxWait()
}

// IsCurrent reports whether a wait is still true as far as this process knows: this reconcile has
// met it, or it is not due. A step that found no slot, or was stopped by a conflict, leaves its
// wait as it was, and its cause may be fixed.
func (w *Waits) IsCurrent(wait *v1alpha1.Wait) bool {
	if wait == nil || wait.NotBefore == nil {
		return false
	}
	met := !wait.NotBefore.Add(-w.state.operatorRetry()).Before(w.started.Truncate(time.Second))
	return met || w.untilDue(wait) > 0
}

// lastActivity is when the event was recorded, or when the last of its runs finished.
func (w *Waits) lastActivity() time.Time {
	latest := w.event.RecordedAt()
	for i := range w.event.Status.Runs {
		if result := w.event.Status.Runs[i].Result; result != nil && result.CompletedAt != nil &&
			result.CompletedAt.After(latest) {
			latest = result.CompletedAt.Time
		}
	}
	return latest
}
