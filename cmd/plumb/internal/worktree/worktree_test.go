// SPDX-License-Identifier: Apache-2.0

package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/scratch"
)

const pipeline = ".tekton/build.yaml"

func open(t *testing.T, dir string) *Tree {
	t.Helper()
	tree, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestOpenRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		dir  func(t *testing.T) string
		want string
	}{
		"a directory of no repository": {
			func(t *testing.T) string { return t.TempDir() }, "is not in a Git repository: run plumb in the working tree",
		},
		"a bare repository": {func(t *testing.T) string {
			dir := t.TempDir()
			scratch.At(t, dir).Git("init", "--quiet", "--bare")
			return dir
		}, "is a Git repository without files"},
		"the .git directory": {func(t *testing.T) string { return filepath.Join(scratch.New(t, nil).Dir, ".git") },
			"is a Git repository without files"},
		"a repository without a commit": {func(t *testing.T) string {
			dir := t.TempDir()
			scratch.At(t, dir).Git("init", "--quiet")
			return dir
		}, "has no commit yet"},
		"a broken repository": {func(t *testing.T) string {
			dir := scratch.New(t, nil).Dir
			if err := os.WriteFile(filepath.Join(dir, ".git", "config"), []byte("[core\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			return dir
		}, "git cannot read"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(t.Context(), test.dir(t))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want a sentence with %q", err, test.want)
			}
		})
	}
}

func TestOpenWithoutGit(t *testing.T) {
	dir := scratch.New(t, nil).Dir
	t.Setenv("PATH", t.TempDir())
	if _, err := Open(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "git is not installed") {
		t.Errorf("got %v, want a sentence about git", err)
	}
}

func TestOpenWhereverTheTreeIs(t *testing.T) {
	repo := scratch.New(t, map[string]string{pipeline: "x", "deep/er/a.go": "x"})
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	repo.Git("worktree", "add", "--quiet", "-b", "side", elsewhere)
	for name, test := range map[string]struct{ dir, root, branch string }{
		"the top":       {repo.Dir, repo.Dir, "main"},
		"below the top": {filepath.Join(repo.Dir, "deep", "er"), repo.Dir, "main"},
		"in a worktree": {elsewhere, elsewhere, "side"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := open(t, test.dir)
			root, err := filepath.EvalSymlinks(test.root)
			if err != nil {
				t.Fatal(err)
			}
			if tree.Root != root || tree.Branch != test.branch || tree.Head.Message != "First commit" ||
				tree.Head.AuthorEmail != "dev@example.com" {
				t.Errorf("got %+v, want the root %s on branch %s", tree, root, test.branch)
			}
			files, err := tree.Files(t.Context(), OnDisk, ".tekton")
			if err != nil || len(files) != 1 || files[0].Path != pipeline {
				t.Errorf("got %v, %v, want %s", files, err, pipeline)
			}
		})
	}
}

func TestDetachedHead(t *testing.T) {
	repo := scratch.New(t, nil)
	repo.Git("checkout", "--quiet", "--detach")
	if tree := open(t, repo.Dir); tree.Branch != "" {
		t.Errorf("a detached HEAD is on branch %q", tree.Branch)
	}
}

func TestDefaultBranch(t *testing.T) {
	for name, test := range map[string]struct {
		prepare []string // a git command
		want    string
	}{
		"main":                          {nil, "main"},
		"master where there is no main": {[]string{"branch", "-m", "master"}, "master"},
		"main where there is neither":   {[]string{"branch", "-m", "trunk"}, "main"},
		"what the remote says": {
			[]string{"symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/release/1"}, "release/1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			repo := scratch.New(t, nil)
			if test.prepare != nil {
				repo.Git(test.prepare...)
			}
			if got := open(t, repo.Dir).DefaultBranch(t.Context()); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestTip(t *testing.T) {
	repo := scratch.New(t, nil)
	first := repo.Git("rev-parse", "HEAD")
	repo.Git("update-ref", "refs/remotes/origin/main", first)
	second := repo.Commit("second")
	repo.Git("branch", "local")
	tree := open(t, repo.Dir)
	for branch, want := range map[string]string{"main": first, "local": second, "none": ""} {
		got, found := tree.Tip(t.Context(), branch)
		if got != want || found != (want != "") {
			t.Errorf("the tip of %s is %q, %v, want %q", branch, got, found, want)
		}
	}
	if parent, found := tree.Parent(t.Context(), second); parent != first || !found {
		t.Errorf("the parent is %q, want %q", parent, first)
	}
	if _, found := tree.Parent(t.Context(), first); found {
		t.Error("the first commit has a parent")
	}
	if !tree.Has(t.Context(), second) || tree.Has(t.Context(), strings.Repeat("1", 40)) {
		t.Error("it does not know which commits the clone has")
	}
	if err := tree.CheckRef(t.Context(), headsPrefix, "a/b"); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "a..b", "a b", "-x", "a\nb", "x.lock", "a~1"} {
		if tree.CheckRef(t.Context(), headsPrefix, bad) == nil {
			t.Errorf("%q is taken for a branch", bad)
		}
	}
}
