// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/store/plans"
)

const (
	// lagLimit is how long a Git service may need to show what it has told of (G10), and a
	// controller to claim a URL. After that it is asked slowly for a commit or claim, and what the
	// service does not confirm is not believed.
	lagLimit = 10 * time.Minute
	// sameWait is how long an event must have waited for one thing before it ends because of its
	// age: what begins to be wrong after an outage of days can still be mended.
	sameWait = time.Hour
)

// The reasons that packages of Git services give themselves: of an answer that is not what was
// asked for (provider.ReasonBadAnswer), of a pull request that is not shown, and of one whose files
// are not listed yet.
const (
	reasonBadAnswer   = "BadAnswer"
	reasonNoPull      = "PullRequestUnknown"
	reasonNotPrepared = "MergeRequestNotPrepared"
)

// ReasonPanic is that of the wait of an event whose processing panics.
const ReasonPanic = "Panic"

// ReasonGivenUp is that of the Kubernetes Event about an event that waited in vain, and of its runs
// that are not created.
const ReasonGivenUp = "GivenUp"

// Slowed turns the backoff of a step that waits for what a replica may not have yet into a slow
// retry once none lags that much.
func (w *Waits) Slowed(step string, err error) error {
	f, before := fault.Of(err), w.Of(step)
	if f == nil || f.Class != fault.Transient || !lags(f.Reason) || before == nil || before.Reason != f.Reason ||
		w.desk.Clock.Since(before.Since.Time) < lagLimit {
		return err
	}
	return fault.Throttledf(f.Reason, w.desk.operatorRetry(), "%s", f.Message)
}

func lags(reason string) bool {
	return reason == fault.ReasonCommitUnknown || reason == fault.ReasonNotConfirmed || reason == fault.ReasonNotClaimedYet
}

// Hopeless reports whether nothing can be expected of a wait any more: the Git service has said
// twice, an operator's wait apart, that the App is not installed any more (G8), it does not confirm
// for longer than a replica lags what the delivery says (S11), or the event is too old to wait for
// an operator, a commit, a claim or room for its plan (S5).
func (w *Waits) Hopeless(wait *v1alpha1.Wait) bool {
	retry, latest := w.desk.operatorRetry(), w.latest()
	if wait == nil || wait.NotBefore == nil ||
		w.desk.Clock.Since(wait.NotBefore.Time) >= retry { // what was met long ago may be over
		return false
	}
	met := wait.NotBefore.Add(-retry).Sub(wait.Since.Time) // from the first to the last attempt that met it
	switch {
	case wait.Reason == fault.ReasonInstallationGone:
		return met >= retry
	case wait.Reason == fault.ReasonNotConfirmed:
		return met >= lagLimit
	case wait.Class == fault.Operator.String() && wait.Reason != ReasonPanic,
		wait.Reason == fault.ReasonCommitUnknown,
		wait.Reason == fault.ReasonNotClaimedYet,
		plans.OverBudget(wait.Reason):
		return met >= sameWait && !latest.IsZero() && w.desk.Clock.Since(latest) >= w.config.MaxWait()
	}
	return false
}

// ReasonDecided ends a run that stood for a plan: what its check showed is over.
const ReasonDecided = "Decided"

// OfGitService reports whether a Transient fault of a reason may be a Git service's that refuses
// one thing and serves others.
func OfGitService(reason string) bool {
	switch reason {
	case fault.ReasonGitUnavailable, fault.ReasonGitUnreachable, fault.ReasonTimeout,
		reasonBadAnswer, reasonNoPull, reasonNotPrepared:
		return true
	}
	return false
}

// Overdue reports whether the event has met a refusal of the Git service, and is too old to wait
// for anything. The caller finds out for how long, and that the service is not down as a whole: an
// outage is waited out.
func (w *Waits) Overdue(wait *v1alpha1.Wait) bool {
	latest := w.latest()
	if wait == nil || wait.Class != fault.Transient.String() || !OfGitService(wait.Reason) || latest.IsZero() {
		return false
	}
	return w.desk.Clock.Since(latest) >= w.config.MaxWait()
}

// Stands reports whether a wait is still true as far as anybody knows: this reconcile has met it,
// or it is not its time. A step that found no turn, or was stopped by a conflict, leaves its wait
// as it was, and what that was for may be mended.
func (w *Waits) Stands(wait *v1alpha1.Wait) bool {
	if wait == nil || wait.NotBefore == nil {
		return false
	}
	met := !wait.NotBefore.Add(-w.desk.operatorRetry()).Before(w.began.Truncate(time.Second))
	return met || w.untilDue(wait) > 0
}

// latest is when the event last brought something to do: when it was recorded, or when the last of
// its runs ended.
func (w *Waits) latest() time.Time {
	latest := w.event.RecordedAt()
	for i := range w.event.Status.Runs {
		if result := w.event.Status.Runs[i].Result; result != nil && result.CompletedAt != nil &&
			result.CompletedAt.After(latest) {
			latest = result.CompletedAt.Time
		}
	}
	return latest
}
