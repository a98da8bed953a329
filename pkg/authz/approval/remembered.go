// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// ReasonForgotten is that of an event that waits because the approval that would have let it run,
// if nothing had changed, is forgotten. None of the pull request's later commits runs by that
// approval (S22).
const ReasonForgotten = "ApprovalForgotten"

// Given returns the approval of a pull request that was given last, with the commit that it is of,
// whatever that is; nil if none is on record. Of a comment that is not on record any more what it
// gave may be, in the records of commits that ran by it. forgotten is the commit for which it was
// forgotten, "" as long as it is remembered.
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

// Remembered reports whether a commit has run by an approval of another one.
func Remembered(recorded []history.Record, sha string) bool {
	for _, r := range recorded {
		if plan := r.Event.Status.Plan; plan != nil && plan.HeadSHA == sha && plan.Approval != nil &&
			plan.Approval.Of(sha) != sha {
			return true
		}
	}
	return false
}
