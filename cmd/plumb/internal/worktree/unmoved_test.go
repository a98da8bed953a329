// SPDX-License-Identifier: Apache-2.0

package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/scratch"
	"github.com/plumbline-ci/plumbline/pkg/git"
)

// git diff would update the index for files that look changed and are not.
func TestNothingIsWritten(t *testing.T) {
	repo := changed(t)
	tree := open(t, repo.Dir)
	later := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(repo.Dir, "kept"), later, later); err != nil {
		t.Fatal(err)
	}
	index := filepath.Join(repo.Dir, ".git", "index")
	before := content(t, index)
	got, err := tree.SinceBase(t.Context(), "main", OnDisk)
	if err != nil {
		t.Fatal(err)
	}
	if before != content(t, index) {
		t.Error("the index was written")
	}
	for _, name := range got.Modified {
		if name == "kept" {
			t.Error("a file with another time and the same text counts as changed")
		}
	}
}

func content(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name) // #nosec G304 -- a file of this test
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Of a submodule only its commit counts. Uncommitted changes in it are in no event, and .gitmodules
// hides nothing from the Git service.
func TestChangesOfSubmodules(t *testing.T) {
	inner := scratch.New(t, map[string]string{"a": "x"})
	repo := scratch.New(t, nil)
	repo.Git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner.Dir, "inner")
	repo.Git("config", "--file", ".gitmodules", "submodule.inner.ignore", "all")
	repo.Commit("a submodule")
	tree := open(t, repo.Dir)
	within := scratch.At(t, filepath.Join(repo.Dir, "inner"))
	within.Write(map[string]string{"a": "y", "untracked": "x"})
	unchanged, err := tree.Between(t.Context(), tree.Head.SHA, OnDisk)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(git.Changes{}, unchanged); diff != "" {
		t.Errorf("with files changed in the submodule (-want +got):\n%s", diff)
	}
	within.Commit("another commit")
	moved, err := tree.Between(t.Context(), tree.Head.SHA, OnDisk)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(git.Changes{Modified: []string{"inner"}}, moved); diff != "" {
		t.Errorf("with another commit in the submodule (-want +got):\n%s", diff)
	}
}

// A directory of a repository may look like a bare repository. It came with the clone, and its
// settings with it.
func TestRepositoryAmongTheFiles(t *testing.T) {
	repo := scratch.New(t, map[string]string{"evil/a": "x"})
	evil := scratch.At(t, filepath.Join(repo.Dir, "evil"))
	evil.Git("init", "--quiet", "--bare", ".")
	evil.Git("config", "core.bare", "false")
	evil.Git("config", "core.worktree", evil.Dir)
	evil.Git("add", "--force", "a")
	evil.Git("commit", "--quiet", "--message", "x")
	ran := filepath.Join(t.TempDir(), "ran")
	evil.Git("config", "filter.x.clean", "touch "+ran+"; cat")
	evil.Write(map[string]string{"info/attributes": "a filter=x\n", "a": "y"})
	tree, err := Open(t.Context(), evil.Dir)
	if err == nil {
		_, err = tree.Between(t.Context(), tree.Head.SHA, OnDisk)
	}
	if _, found := os.Stat(ran); found == nil {
		t.Error("a program that the repository names ran")
	}
	if err == nil || !strings.Contains(err.Error(), "run plumb where .tekton is checked out") {
		t.Errorf("got %v, want a sentence that it is no working tree", err)
	}
}
