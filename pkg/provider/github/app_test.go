// SPDX-License-Identifier: Apache-2.0

package github

import (
	"testing"

	"github.com/plumbline-ci/plumbline/test/forge"
)

// GitHub says which accounts are Apps, because the login of its own coding agent does not show it.
// The type of the author is in the event of a pull request, in a comment on it, and in GitHub's
// answers about it.
func TestDecodeAppAuthor(t *testing.T) {
	for author, want := range map[string]bool{"Copilot": true, "renovate[bot]": true, "ada": false} {
		b := newBench(t)
		b.Commit("main", map[string]string{"x": "y"})
		b.AddUser(author)
		b.Commit("topic", map[string]string{"x": "z"})
		number := b.OpenPullRequest(forge.NewPull{
			Base: testRepo, Head: testRepo, HeadBranch: "topic", Author: author, Title: "a change",
		})
		opened := b.decode(b.PullRequestDelivery(forge.PullEvent{Repo: testRepo, Number: number, Action: "opened"}))
		comment := b.decode(b.CommentDelivery(forge.CommentEvent{
			Repo: testRepo, ID: b.GitHub.Comment(testRepo, number, "ada", "/test"),
		}))
		told := comment.PullRequest.App
		comment.PullRequest.App = false
		got, err := b.client.Complete(t.Context(), comment)
		if err != nil || opened.PullRequest.App != want || told != want || got.PullRequest.App != want {
			t.Errorf("%s: %t of the pull request, %t of a comment, %v of GitHub (%v)", author, opened.PullRequest.App, told, got,
				err)
		}
	}
}
