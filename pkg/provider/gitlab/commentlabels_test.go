// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"testing"

	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// S11: labels choose pipelines (on-label), and the title is a variable: of a comment, too, they are
// the merge request's own, whatever a body says.
func TestCompleteReadsLabelsAndTitleOfComment(t *testing.T) {
	b, iid := forked(t, forgelab.Public, "")
	forged := b.decode(b.NoteDelivery(b.AddNote(testProject, iid, "rita", "/test")))
	title := forged.PullRequest.Title
	forged.PullRequest.Labels, forged.PullRequest.Title = []string{"release"}, "forged"
	got, err := b.client.Complete(t.Context(), forged)
	if err != nil || len(got.PullRequest.Labels) != 0 || got.PullRequest.Title != title {
		t.Errorf("%v, labels %q and title %q, want none and %q", err, got.PullRequest.Labels, got.PullRequest.Title, title)
	}
}
