// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// A check that waits for approval ends with the event that started its commit, whatever became of
// that one; and with what its own event has found. It is neither a success nor a failure, and none
// is made for it.
func TestWhatWaitedForApprovalEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		disposition v1alpha1.Disposition
		plan        v1alpha1.Plan
		ends        bool
		says        string
	}{
		"it was approved": {v1alpha1.DispositionRuns, v1alpha1.Plan{
			EndsPending: true, Approval: &v1alpha1.Approval{By: "member"}, HeadSHA: "abc",
		}, true, "member has approved commit abc"},
		"it was approved, and nothing is": {v1alpha1.DispositionIgnored,
			v1alpha1.Plan{EndsPending: true, Approval: &v1alpha1.Approval{By: "member"}}, true, "no pipeline"},
		"it was approved, and cannot be now": {v1alpha1.DispositionRefused,
			v1alpha1.Plan{EndsPending: true, Approval: &v1alpha1.Approval{By: "member"}}, true, "member"},
		"its author may write now": {
			v1alpha1.DispositionRuns, v1alpha1.Plan{EndsPending: true}, true, "An account with the permission",
		},
		"another event has started it": {
			v1alpha1.DispositionPending, v1alpha1.Plan{StartedBy: "comment-1"}, true, "An account with the permission",
		},
		"nobody has":     {v1alpha1.DispositionPending, v1alpha1.Plan{}, false, ""},
		"nothing waited": {v1alpha1.DispositionRuns, v1alpha1.Plan{}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := event(c.disposition)
			e.Status.Plan = &c.plan
			ended := 0
			_, before, _ := strings.Cut(e.Spec.Subjects(), ",") // the version before had the UID of the Repository in it
			for _, check := range Desired(Input{Application: "CI", Event: e}) {
				if check.State != Completed {
					continue
				}
				ended++
				if check.Key != EventKey || check.Name != "CI" || check.ExternalID != ApprovalID(e) ||
					!check.HasExternalID("approval-"+before+"-"+e.Status.Plan.HeadSHA) || check.Conclusion != Skipped ||
					!check.OnlyOpen || !strings.Contains(check.Text, c.says) {
					t.Errorf("%+v", check)
				}
			}
			if ended == 1 != c.ends {
				t.Errorf("%d checks end", ended)
			}
		})
	}
}
