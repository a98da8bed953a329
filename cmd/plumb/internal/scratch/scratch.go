// SPDX-License-Identifier: Apache-2.0

// Package scratch makes Git repositories for tests.
package scratch

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Remote is where scratch repositories say they live.
const remote = "git@github.com:acme/app.git"

// Repo is a Git repository that ends with its test.
type Repo struct {
	t *testing.T
	// Dir is its top directory.
	Dir string
}

// New returns a repository whose main branch has one commit with the files, by path. Its dates are
// fixed, so that equal repositories have equal commits.
func New(t *testing.T, files map[string]string) *Repo {
	t.Helper()
	r := &Repo{t: t, Dir: t.TempDir()}
	r.Git("init", "--quiet", "--initial-branch=main")
	r.Git("remote", "add", "origin", remote)
	r.Write(files)
	r.Commit("First commit")
	return r
}

// At is a directory that another program has made a repository of.
func At(t *testing.T, dir string) *Repo { return &Repo{t: t, Dir: dir} }

// Git runs git and returns what it printed, without the line end.
func (r *Repo) Git(args ...string) string {
	r.t.Helper()
	command := exec.CommandContext(context.Background(), "git", args...) // #nosec G204 -- a test's own arguments
	command.Dir = r.Dir
	command.Env = append(
		slices.DeleteFunc(os.Environ(), elsewhere),
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_CONFIG_NOSYSTEM=1",
		"LC_ALL=C",
		"GIT_AUTHOR_NAME=Dev",
		"GIT_AUTHOR_EMAIL=dev@example.com",
		"GIT_COMMITTER_NAME=Dev",
		"GIT_COMMITTER_EMAIL=dev@example.com",
		"GIT_AUTHOR_DATE=2026-01-01T00:00:00Z",
		"GIT_COMMITTER_DATE=2026-01-01T00:00:00Z",
	)
	out, err := command.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// elsewhere reports whether a variable makes git write to another repository, as where git itself
// runs the tests: rebase --exec, or a hook.
func elsewhere(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return slices.Contains(
		[]string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE"},
		name,
	)
}

// Write writes files, by path.
func (r *Repo) Write(files map[string]string) {
	r.t.Helper()
	for name, text := range files {
		at := filepath.Join(r.Dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
}

// Remove deletes a file.
func (r *Repo) Remove(name string) {
	r.t.Helper()
	if err := os.RemoveAll(filepath.Join(r.Dir, name)); err != nil {
		r.t.Fatal(err)
	}
}

// Commit commits everything and returns the commit.
func (r *Repo) Commit(message string) string {
	r.t.Helper()
	r.Git("add", "--all")
	r.Git("commit", "--quiet", "--allow-empty", "--message", message)
	return r.Git("rev-parse", "HEAD")
}
