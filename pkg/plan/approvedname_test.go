// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
)

// A command that names an unknown pipeline approves nothing: the pull request still waits, and
// nothing runs when its author reopens it.
func TestCommandWithUnknownNameDoesNotApprove(t *testing.T) {
	t.Parallel()
	w := &env{files: []git.File{pulled("a")}, writers: "member", said: "/test typo", moved: sha}
	w.records = append(w.records, onRecord("pull-1", sha, 1, v1alpha1.DispositionPending))
	made := w.make(t, saying("member"))
	if made.Reason != "UnknownName" || made.Approval != nil || made.EndsPending {
		t.Errorf("%s: approved by %+v, the check that waits ends: %t", made.Reason, made.Approval, made.EndsPending)
	}
}
