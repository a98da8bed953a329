// SPDX-License-Identifier: Apache-2.0

package github

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
)

// A merge group changes all that it would merge, also what the groups ahead of it in the queue
// change: a queue may merge them all by the checks of the last.
func TestChangedByMergeGroupIncludesGroupsAhead(t *testing.T) {
	b := newBench(t)
	main := b.Commit("main", map[string]string{"a": "1"})
	ahead := b.ForcePush("gh-readonly-queue/main/pr-1-x", main, map[string]string{"src/a": "2"})
	group := b.ForcePush("gh-readonly-queue/main/pr-2-y", ahead, map[string]string{"README.md": "3"})
	event := &v1alpha1.GitEventSpec{
		Trigger: v1alpha1.TriggerMergeGroup, SHA: group, Before: ahead, BaseRef: "main",
		HeadRef: "gh-readonly-queue/main/pr-2-y",
	}
	requireChanged(t, b, event, "README.md", "src/a")
	b.ForcePush("main", ahead, nil)
	requireChanged(t, b, event, "README.md") // the group ahead is merged
	b.ForcePush("main", ahead, map[string]string{"else": "4"})
	requireChanged(t, b, event, "README.md") // and the branch has moved on
	b.ForcePush("main", group, nil)
	requireChanged(t, b, event, "README.md") // it is merged itself
	event.BaseRef = "gone"
	requireChanged(t, b, event, "README.md")
}

func requireChanged(t *testing.T, b bench, event *v1alpha1.GitEventSpec, added ...string) {
	t.Helper()
	got, err := b.client.Changed(t.Context(), event)
	if diff := cmp.Diff(git.Changes{Added: added}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
