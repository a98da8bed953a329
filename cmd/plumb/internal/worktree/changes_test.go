// SPDX-License-Identifier: Apache-2.0

package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/scratch"
	"github.com/plumbline-ci/plumbline/pkg/git"
)

// long is a text that Git finds again after it was renamed.
var long = strings.Repeat("a line of a file that is renamed\n", 20)

func changed(t *testing.T) *scratch.Repo {
	t.Helper()
	repo := scratch.New(t, map[string]string{"kept": "x", "edited": "x", "gone": "gone for good\n", "old name": long,
		"staged gone": "another text\n", ".gitignore": "*.log\n"})
	repo.Git("checkout", "--quiet", "-b", "topic")
	repo.Write(map[string]string{"edited": "y", "größe": "x", "a\nb": "x"})
	repo.Git("mv", "old name", "new name")
	repo.Commit("second")
	repo.Write(map[string]string{"edited": "z", "untracked/c d": "x", "staged": "x", "ignored.log": "x"})
	repo.Git("add", "staged")
	repo.Git("rm", "--quiet", "staged gone")
	repo.Remove("gone")
	return repo
}

func TestChanges(t *testing.T) {
	repo := changed(t)
	tree := open(t, filepath.Join(repo.Dir, "untracked"))
	first, second := repo.Git("rev-parse", "main"), repo.Git("rev-parse", "topic")
	all := git.Changes{
		Added: []string{"a\nb", "größe", "staged", "untracked/c d"}, Modified: []string{"edited"},
		Deleted: []string{"gone", "staged gone"}, Renamed: []string{"new name"},
	}
	committed := git.Changes{Added: []string{"a\nb", "größe"}, Modified: []string{"edited"}, Renamed: []string{"new name"}}
	open := git.Changes{
		Added: []string{"staged", "untracked/c d"}, Modified: []string{"edited"}, Deleted: []string{"gone", "staged gone"},
	}
	for name, test := range map[string]struct {
		ask  func() (git.Changes, error)
		want git.Changes
	}{
		"a pull request, with what is not committed": {
			func() (git.Changes, error) { return tree.SinceBase(t.Context(), "main", OnDisk) }, all,
		},
		"a pull request's commits": {
			func() (git.Changes, error) { return tree.SinceBase(t.Context(), "main", second) }, committed,
		},
		"between a commit and the disk": {
			func() (git.Changes, error) { return tree.Between(t.Context(), second, OnDisk) }, open,
		},
		"the last commit": {
			func() (git.Changes, error) { return tree.OfCommit(t.Context(), second) }, committed,
		},
		"what is not committed is the last commit of what is on disk": {
			func() (git.Changes, error) { return tree.OfCommit(t.Context(), OnDisk) }, open,
		},
		"the first commit": {func() (git.Changes, error) { return tree.OfCommit(t.Context(), first) },
			git.Changes{Added: []string{".gitignore", "edited", "gone", "kept", "old name", "staged gone"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.ask()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

// The user's Git configuration has no effect, and no hook runs.
func TestChangesUnderHostileSettings(t *testing.T) {
	repo := changed(t)
	want, err := open(t, repo.Dir).SinceBase(t.Context(), "main", OnDisk)
	if err != nil {
		t.Fatal(err)
	}
	ran := filepath.Join(t.TempDir(), "ran")
	hook := filepath.Join(t.TempDir(), "hook")
	// #nosec G306 -- it must be executable
	if err := os.WriteFile(hook, []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(settings, []byte("[core]\n\tquotepath = on\n\tpager = cat\n\tfsmonitor = "+hook+"\n"+
		"[diff]\n\trenames = false\n\tnoprefix = true\n\texternal = "+hook+
		"\n\trelative = true\n[color]\n\tui = always\n[log]\n\tshowSignature = true\n[status]\n\tshowUntrackedFiles = no\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", settings)
	t.Setenv("GIT_LITERAL_PATHSPECS", "0")
	tree := open(t, filepath.Join(repo.Dir, "untracked"))
	got, err := tree.SinceBase(t.Context(), "main", OnDisk)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if tree.Head.Message != "second" {
		t.Errorf("the message is %q", tree.Head.Message)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program of the user's settings ran")
	}
}

func TestChangesThatCannotBeKnown(t *testing.T) {
	repo := changed(t)
	repo.Git("stash", "--quiet", "--include-untracked")
	shallow := filepath.Join(t.TempDir(), "shallow")
	repo.Git("clone", "--quiet", "--depth=1", "--no-single-branch", "file://"+repo.Dir, shallow)
	repo.Git("checkout", "--quiet", "--orphan", "apart")
	repo.Commit("another beginning")
	for name, test := range map[string]struct {
		dir, base string
		want      string
	}{
		"a branch that was not fetched": {
			repo.Dir, "release-1", "the clone has no branch release-1 to compare with: git fetch it",
		},
		"a branch of another beginning": {repo.Dir, "main", "no commit in common"},
		"a shallow clone":               {shallow, "main", "the clone is shallow: git fetch --unshallow"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := open(t, test.dir).SinceBase(t.Context(), test.base, OnDisk)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "--changed") {
				t.Errorf("got %v, want a sentence with %q and what to do", err, test.want)
			}
		})
	}
	if _, err := open(t, shallow).OfCommit(t.Context(), OnDisk); err == nil ||
		!strings.Contains(err.Error(), "--unshallow") {
		t.Errorf("of the last commit of a shallow clone: got %v, want a sentence about it", err)
	}
}

func TestReadStatus(t *testing.T) {
	for _, bad := range []string{"\x00a\x00", "M\x00", "R100\x00a\x00"} {
		if got, err := readStatus(bad); err == nil {
			t.Errorf("%q is read as %+v", bad, got)
		}
	}
}
