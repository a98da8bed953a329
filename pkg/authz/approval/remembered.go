// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// ReasonForgotten is the reason of an event that waits because an earlier approval no longer counts
// after a change. No later commit of the pull request runs by that approval (S22).
const ReasonForgotten = "ApprovalForgotten"

// Given returns the last approval of a pull request, with the commit that was approved; nil if none
// is on record. If the comment is no longer on record, the approval is read from the commits that
// ran because of it. forgotten is the commit at which the approval stopped counting, "" while it
// counts.
func Given(recorded []history.Record) (given *v1alpha1.Approval, forgotten string) {
	at := -1
	for i, r := range recorded {
		plan := r.Event.Status.Plan
		if plan == nil || plan.Approval == nil {
			continue
		}
		itself := plan.Approval.Event == r.Event.Name
		if itself || at < 0 {
			given = plan.Approval.DeepCopy()
			given.SHA = given.Of(plan.HeadSHA)
		}
		if itself {
			at = i
		}
	}
	if given == nil {
		return nil, ""
	}
	for _, r := range recorded[at+1:] {
		if plan := r.Event.Status.Plan; plan != nil && plan.Reason == ReasonForgotten {
			return given, plan.HeadSHA
		}
	}
	return given, ""
}

// Remembered reports whether a commit has run because of an approval of another one.
func Remembered(recorded []history.Record, sha string) bool {
	for _, r := range recorded {
		if plan := r.Event.Status.Plan; plan != nil && plan.HeadSHA == sha && plan.Approval != nil &&
			plan.Approval.Of(sha) != sha {
			return true
		}
	}
	return false
}
