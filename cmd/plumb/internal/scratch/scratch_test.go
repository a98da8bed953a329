// SPDX-License-Identifier: Apache-2.0

package scratch

import "testing"

func TestOtherRepositoriesAreLeftAlone(t *testing.T) {
	developers := New(t, nil)
	before := developers.Git("rev-parse", "HEAD")
	t.Setenv("GIT_DIR", developers.Dir+"/.git")
	t.Setenv("GIT_WORK_TREE", developers.Dir)
	repo := New(t, map[string]string{"a": "x"})
	repo.Git("checkout", "--quiet", "-b", "topic")
	if now := developers.Git("rev-parse", "HEAD"); now != before || developers.Git("branch", "--show-current") != "main" {
		t.Error("a scratch repository was made in the repository that GIT_DIR names")
	}
}
