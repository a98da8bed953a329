// SPDX-License-Identifier: Apache-2.0

package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// OnDisk is passed in place of a commit to read the files on disk.
const OnDisk = ""

// emptyTree is the id that every Git repository has for a tree without files; the second one is
// SHA-256's.
const (
	emptyTree    = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
	emptyTree256 = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
)

// SinceBase lists the files that a pull request would show: all changes since the branch left its
// base. They end at a commit or at what is on disk, untracked files included.
func (t *Tree) SinceBase(ctx context.Context, base, to string) (git.Changes, error) {
	tip, found := t.Tip(ctx, base)
	if !found {
		return git.Changes{}, fmt.Errorf(
			"the clone has no branch %s to compare with: git fetch it, or say with --changed which files differ", base,
		)
	}
	head := to
	if to == OnDisk {
		head = t.Head.SHA
	}
	from, err := t.git(ctx, "merge-base", tip, head)
	if err != nil {
		return git.Changes{}, t.noHistory(ctx, fmt.Sprintf("where the branch left %s is not known", base))
	}
	return t.Between(ctx, strings.TrimSpace(from), to)
}

// Dirty reports whether something is not committed yet.
func (t *Tree) Dirty(ctx context.Context) (bool, error) {
	changes, err := t.Between(ctx, t.Head.SHA, OnDisk)
	return len(changes.Added)+len(changes.Modified)+len(changes.Deleted)+len(changes.Renamed) > 0, err
}

// OfCommit lists the files that a commit changed. For the files on disk, uncommitted changes count
// as the last commit.
func (t *Tree) OfCommit(ctx context.Context, to string) (git.Changes, error) {
	sha := to
	if to == OnDisk {
		dirty, err := t.Dirty(ctx)
		if err != nil {
			return git.Changes{}, err
		}
		if dirty {
			return t.Between(ctx, t.Head.SHA, OnDisk)
		}
		sha = t.Head.SHA
	}
	parent, found := t.Parent(ctx, sha)
	if !found {
		// In a shallow clone the oldest commit seems to have no parent, and to have added every
		// file.
		commit, err := t.git(ctx, "cat-file", "commit", sha)
		if err != nil || strings.Contains("\n"+header(commit), "\nparent ") {
			return git.Changes{}, t.noHistory(ctx, "what the last commit changed is not known")
		}
		parent = emptyTree
		if len(sha) == len(emptyTree256) {
			parent = emptyTree256
		}
	}
	return t.Between(ctx, parent, sha)
}

// header is the part of a commit before its message.
func header(commit string) string {
	header, _, _ := strings.Cut(commit, "\n\n")
	return header
}

// Between lists what differs between two commits, or between a commit and what is on disk.
func (t *Tree) Between(ctx context.Context, from, to string) (git.Changes, error) {
	said, err := t.diff(ctx, from, to, "-M")
	if err != nil {
		return git.Changes{}, err
	}
	changes, err := readStatus(said)
	if err != nil || to != OnDisk {
		return changes, err
	}
	untracked, err := t.git(ctx, "ls-files", "-z", "--others", "--exclude-standard", "--full-name")
	if err != nil {
		return git.Changes{}, err
	}
	for _, name := range fields(untracked) {
		if !strings.HasSuffix(name, "/") { // a repository of its own within this one
			changes.Added = append(changes.Added, name)
		}
	}
	return changes, nil
}

// Pushed lists the files that a push from one commit to another changed, as GitHub reports them to
// Plumbline. GitHub reports renames only for a fast-forward of fewer than provider.MaxCompared
// files.
func (t *Tree) Pushed(ctx context.Context, from, to string) (git.Changes, error) {
	if _, err := t.git(ctx, "merge-base", "--is-ancestor", from, to); err == nil {
		changes, err := t.Between(ctx, from, to)
		if err != nil ||
			len(changes.Added)+len(changes.Modified)+len(changes.Deleted)+len(changes.Renamed) < provider.MaxCompared {
			return changes, err
		}
	}
	said, err := t.diff(ctx, from, to, "--no-renames")
	if err != nil {
		return git.Changes{}, err
	}
	return readStatus(said)
}

// diff lists the changed files. Of a submodule only its commit counts, whatever .gitmodules says: a
// change inside of it is no change of this repository. To compare files on disk, git updates the
// index, and no setting prevents that. So git gets a copy of the index.
func (t *Tree) diff(ctx context.Context, from, to, renames string) (string, error) {
	args := []string{
		"diff",
		"--name-status",
		"-z",
		renames,
		"--no-ext-diff",
		"--no-textconv",
		"--no-color",
		"--ignore-submodules=dirty",
		from,
	}
	if to != OnDisk {
		return t.git(ctx, append(args, to, "--")...)
	}
	index, err := t.copyIndex(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(filepath.Dir(index)) }() // it is in the directory for such files
	return t.gitWith(ctx, []string{"GIT_INDEX_FILE=" + index}, append(args, "--")...)
}

// copyIndex copies the index into a directory of its own.
func (t *Tree) copyIndex(ctx context.Context) (string, error) {
	said, err := t.git(ctx, "rev-parse", "--git-path", "index")
	if err != nil {
		return "", err
	}
	from := strings.TrimSuffix(said, "\n")
	if !filepath.IsAbs(from) {
		from = t.path(from)
	}
	data, missing := os.ReadFile(from) // #nosec G304 -- where git says its index is
	if missing != nil && !errors.Is(missing, fs.ErrNotExist) {
		return "", missing
	}
	dir, err := os.MkdirTemp("", "plumb-")
	if err != nil {
		return "", err
	}
	index := filepath.Join(dir, "index")
	if missing == nil { // else every file is untracked, as git sees it
		err = os.WriteFile(index, data, 0o600) // #nosec G703 -- in a directory of our own
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return "", err
	}
	return index, nil
}

// noHistory says why Git cannot compare, and what to do.
func (t *Tree) noHistory(ctx context.Context, what string) error {
	if t.shallow(ctx) {
		return fmt.Errorf("%s, because the clone is shallow: git fetch --unshallow, or say with --changed which files differ",
			what)
	}
	return fmt.Errorf("%s: the two have no commit in common here; say with --changed which files differ", what)
}

// readStatus reads git diff --name-status -z: a status, then one path, or two for what was renamed
// or copied.
func readStatus(said string) (git.Changes, error) {
	var changes git.Changes
	parts := fields(said)
	for len(parts) > 0 {
		status, paths := parts[0], 1
		if status == "" {
			return changes, fmt.Errorf("git diff printed an empty status")
		}
		if status[0] == 'R' || status[0] == 'C' {
			paths = 2
		}
		if len(parts) <= paths {
			return changes, fmt.Errorf("git diff printed a status %q without a path", status)
		}
		name := parts[paths] // of two paths the second one is the new name
		switch status[0] {
		case 'A', 'C':
			changes.Added = append(changes.Added, name)
		case 'D':
			changes.Deleted = append(changes.Deleted, name)
		case 'R':
			changes.Renamed = append(changes.Renamed, name)
		default:
			changes.Modified = append(changes.Modified, name)
		}
		parts = parts[paths+1:]
	}
	return changes, nil
}

// fields splits a text in which each field ends with NUL.
func fields(said string) []string {
	if said == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(said, "\x00"), "\x00")
}
