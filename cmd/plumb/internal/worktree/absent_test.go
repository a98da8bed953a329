// SPDX-License-Identifier: Apache-2.0

package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/scratch"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// A file in place of a directory is refused on disk as it is at the commit that has it.
func TestFilesOfWhatIsNoDirectory(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*testing.T, *scratch.Repo)
		want    string
	}{
		"a submodule": {addSubmodule, ".tekton is a submodule, and no submodule is followed"},
		"a submodule that is not checked out": {func(t *testing.T, r *scratch.Repo) {
			addSubmodule(t, r)
			r.Commit("with a submodule")
			r.Git("submodule", "--quiet", "deinit", "--force", ".tekton")
		}, ".tekton is a submodule, and no submodule is followed"},
		"a repository of its own": {func(t *testing.T, r *scratch.Repo) {
			r.Write(map[string]string{".tekton/a.yaml": "a"})
			inner := scratch.At(t, filepath.Join(r.Dir, ".tekton"))
			inner.Git("init", "--quiet")
			inner.Commit("inner")
		}, ".tekton is a submodule, and no submodule is followed"},
		"a link to a directory": {func(t *testing.T, r *scratch.Repo) {
			r.Write(map[string]string{"ci/a.yaml": "a"})
			if err := os.Symlink("ci", filepath.Join(r.Dir, ".tekton")); err != nil {
				t.Fatal(err)
			}
		}, ".tekton is a symbolic link, and no link is followed"},
		"a file": {func(_ *testing.T, r *scratch.Repo) { r.Write(map[string]string{".tekton": "a"}) },
			".tekton has been found but is not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			repo := scratch.New(t, map[string]string{"README.md": "x"})
			test.prepare(t, repo)
			tree := open(t, repo.Dir)
			for _, at := range []string{OnDisk, repo.Commit("all of it")} {
				if _, err := tree.Files(t.Context(), at, ".tekton"); !fault.Is(err, fault.Invalid) ||
					!strings.HasPrefix(err.Error(), test.want) {
					t.Errorf("at %q: got %v, want %q", at, err, test.want)
				}
			}
		})
	}
}

// addSubmodule makes .tekton a submodule that is checked out.
func addSubmodule(t *testing.T, r *scratch.Repo) {
	t.Helper()
	other := scratch.New(t, map[string]string{"a.yaml": "a"})
	r.Git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other.Dir, ".tekton")
}

// A sparse checkout leaves files out that every event sees. A file that is deleted on disk is gone.
func TestFilesOfASparseCheckout(t *testing.T) {
	repo := scratch.New(t, map[string]string{
		".tekton/a.yaml": "a", ".tekton/deep/b.yaml": "b", "tasks/c.yaml": "c", "src/main.go": "x",
	})
	repo.Git("sparse-checkout", "set", "src")
	tree := open(t, repo.Dir)
	for _, change := range []struct {
		prepare func()
		want    map[string]string
	}{
		{func() {}, map[string]string{".tekton/a.yaml": "a", ".tekton/deep/b.yaml": "b"}},
		{func() { repo.Git("sparse-checkout", "set", "src", ".tekton/deep") },
			map[string]string{".tekton/a.yaml": "a", ".tekton/deep/b.yaml": "b"}},
		{func() { repo.Write(map[string]string{".tekton/deep/b.yaml": "on disk"}) },
			map[string]string{".tekton/a.yaml": "a", ".tekton/deep/b.yaml": "on disk"}},
		{func() { repo.Remove(".tekton/deep") }, map[string]string{".tekton/a.yaml": "a"}},
	} {
		change.prepare()
		files, err := tree.Files(t.Context(), OnDisk, ".tekton")
		if diff := cmp.Diff(change.want, texts(files)); diff != "" || err != nil {
			t.Errorf("%v, files (-want +got):\n%s", err, diff)
		}
	}
	if data, err := tree.File(t.Context(), OnDisk, "tasks/c.yaml"); err != nil || string(data) != "c" {
		t.Errorf("one file: %q, %v", data, err)
	}
	if _, err := tree.File(t.Context(), OnDisk, ".tekton/deep/b.yaml"); !fault.Is(err, fault.Invalid) {
		t.Errorf("a deleted file: %v", err)
	}
}

func TestIgnoredFiles(t *testing.T) {
	repo := scratch.New(t, map[string]string{".gitignore": "mine\n*.yml\n", ".tekton/a.yaml": "a", "README.md": "x"})
	repo.Write(map[string]string{
		".tekton/mine/b.yaml": "b", ".tekton/c.yml": "c", ".tekton/mine/README.md": "x", "mine/d.yaml": "d",
	})
	got, err := open(t, repo.Dir).Ignored(t.Context(), ".tekton")
	if diff := cmp.Diff([]string{".tekton/c.yml", ".tekton/mine/b.yaml"}, got); diff != "" || err != nil {
		t.Errorf("%v, ignored files (-want +got):\n%s", err, diff)
	}
}
