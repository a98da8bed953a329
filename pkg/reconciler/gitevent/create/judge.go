// SPDX-License-Identifier: Apache-2.0

package create

import (
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/store/plans"
)

// EchoLimit is how long a denial whose text repeats an outage's is retried before it is accepted as
// a denial (C11).
const EchoLimit = 10 * time.Minute

// verdict is the outcome of an attempt to create a run. At most one field is set.
type verdict struct {
	refused *v1alpha1.Refusal
	result  *v1alpha1.Result
	wait    error
}

// judge turns a final error into the run's refusal or result. Every other error is a wait. before
// is the wait of an earlier attempt, nil if there is none; giveUp is true if waiting is pointless.
func judge(err error, before *v1alpha1.Wait, now time.Time, giveUp bool) verdict {
	f := fault.Of(err)
	if f == nil {
		return verdict{}
	}
	if f.Reason == fault.ReasonDenialEchoesOutage && before != nil &&
		before.Reason == f.Reason && now.Sub(before.Since.Time) > EchoLimit {
		f = f.Believe()
	}
	if f.Class == fault.Invalid {
		return verdict{refused: &v1alpha1.Refusal{Reason: f.Reason, Message: f.Advice()}}
	}
	if f.Reason == fault.ReasonInstallationGone && giveUp {
		f.Reason = attempt.ReasonGivenUp
	}
	if neverCreatable(f.Reason) ||
		slices.Contains([]string{attempt.ReasonSuperseded, attempt.ReasonCancelled, attempt.ReasonGivenUp}, f.Reason) {
		return verdict{result: &v1alpha1.Result{Outcome: v1alpha1.OutcomeCancelled, Reason: f.Reason, Message: f.Message}}
	}
	return verdict{wait: err}
}

// neverCreatable reports whether a run can never be created although its author made no mistake:
// its namespace, its Repository or its payload is gone.
func neverCreatable(reason string) bool {
	return reason == fault.ReasonNamespaceTerminating || reason == credentials.ReasonRepositoryGone ||
		reason == plans.ReasonPayloadMissing
}
