// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/git"
	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// GitLab lists a merge request for each of its commits, including those that main has, and those of
// forks. Only source and head identify the merge request of a branch of the project.
func TestPullsNameSourceAndTarget(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	b.SetVisibility(testProject, forgelab.Public)
	b.SetBranch(testProject, "old", b.head.SHA, "dev")
	first := b.GitLab.Commit(testProject, "main", forgelab.Change{Message: "one", Files: map[string]string{"x": "1"}})
	fork := b.CreateProject(testFork, forgelab.ProjectOptions{ForkOf: testProject, Visibility: forgelab.Public})
	theirs := b.GitLab.Commit(testFork, "main",
		forgelab.Change{Message: "theirs", Author: "stranger", Files: map[string]string{"y": "z"}})
	iid := b.OpenMergeRequest(forgelab.NewMergeRequest{
		Target: testProject, TargetBranch: "old", Source: testFork, SourceBranch: "main", Author: "stranger",
	})
	want := git.Pull{Number: iid, Open: true, SHA: theirs, BaseRef: "old", HeadRef: "main", HeadProjectID: fork.ID}
	for _, sha := range []string{first, theirs} {
		got, err := b.client.Pulls(t.Context(), sha)
		if d := cmp.Diff([]git.Pull{want}, got); err != nil || d != "" {
			t.Errorf("of commit %s: %v\n%s", sha, err, d)
		}
	}
	want.Open, want.Merged = false, true
	got, err := b.client.Pulls(t.Context(), b.Merge(testProject, iid, "dev"))
	if d := cmp.Diff([]git.Pull{want}, got); err != nil || d != "" {
		t.Errorf("merged: %v\n%s", err, d)
	}
}
