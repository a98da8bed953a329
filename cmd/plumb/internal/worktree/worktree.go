// SPDX-License-Identifier: Apache-2.0

// Package worktree reads a working tree through the git program: what is on disk, what Git knows of
// it, and what differs. It writes nothing and asks no remote.
package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Tree is a working tree with at least one commit.
type Tree struct {
	// Root is its top directory.
	Root string
	// Head is the commit that is checked out.
	Head Commit
	// Branch is the branch that is checked out, empty when HEAD is detached.
	Branch string
}

// Open returns the working tree that a directory is in.
func Open(ctx context.Context, dir string) (*Tree, error) {
	t := &Tree{Root: dir}
	inside, err := t.git(ctx, "rev-parse", "--is-inside-work-tree")
	if err != nil {
		return nil, notATree(dir, err)
	}
	if strings.TrimSpace(inside) != "true" {
		return nil, errBare(dir)
	}
	root, err := t.git(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	t.Root = filepath.FromSlash(strings.TrimSuffix(root, "\n"))
	if _, err := t.git(ctx, "rev-parse", "--verify", "--quiet", "HEAD"); err != nil {
		return nil, fmt.Errorf(
			"the repository at %s has no commit yet: make one, then there is something that an event can be about", t.Root,
		)
	}
	head, err := t.Commit(ctx, "HEAD")
	if err != nil {
		return nil, err
	}
	t.Head = head
	branch, err := t.git(ctx, "symbolic-ref", "--quiet", "HEAD")
	if err == nil {
		t.Branch = strings.TrimPrefix(strings.TrimSpace(branch), headsPrefix)
	}
	return t, nil
}

func errBare(dir string) error {
	return fmt.Errorf(
		"%s is a Git repository without files (a bare one, or its .git directory): run plumb where .tekton is checked out",
		dir,
	)
}

// notATree says in a sentence why there is no working tree.
func notATree(dir string, err error) error {
	var failed *gitError
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return errors.New("the program git is not installed, or not in PATH: plumb reads the working tree with it")
	case errors.As(err, &failed) && strings.Contains(failed.said, "not a git repository"):
		return fmt.Errorf("%s is not in a Git repository: run plumb in the working tree whose .tekton is to be planned", dir)
	case errors.As(err, &failed) && strings.Contains(failed.said, "cannot use bare repository"):
		return errBare(dir)
	}
	return fmt.Errorf("git cannot read %s: %w", dir, err)
}

// gitError is what git said when it failed.
type gitError struct {
	command, said string
	cause         error
}

func (e *gitError) Error() string { return "git " + e.command + ": " + e.said }
func (e *gitError) Unwrap() error { return e.cause }

// settings make git's answers independent of the user's configuration. They also keep git from
// running hooks and from fetching what a partial clone lacks. git must not use a bare repository
// among the files of this one: its settings may name programs, and came with the clone. The Git
// service knows no replacements, so they are off.
func settings() []string {
	return []string{
		"--no-pager", "--no-replace-objects", "--literal-pathspecs",
		"-c", "core.fsmonitor=false", "-c", "protocol.allow=never", "-c", "safe.bareRepository=explicit",
	}
}

// git returns what a git command prints.
func (t *Tree) git(ctx context.Context, args ...string) (string, error) {
	return t.gitWith(ctx, nil, args...)
}

// gitWith runs git like the method git, with more environment variables.
func (t *Tree) gitWith(ctx context.Context, env []string, args ...string) (string, error) {
	command := exec.CommandContext(
		ctx,
		"git",
		append(settings(), args...)...) // #nosec G204 -- no shell, and no argument of a user's stands where an option may
	command.Dir = t.Root
	command.Env = append(os.Environ(), "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0")
	command.Env = append(command.Env, env...)
	var out, said bytes.Buffer
	command.Stdout, command.Stderr = &out, &said
	if err := command.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return "", &gitError{command: args[0], said: firstWords(said.String(), err), cause: err}
	}
	return out.String(), nil
}

// firstWords returns git's error message without its "fatal:" and its hints.
func firstWords(said string, err error) string {
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if text, found := strings.CutPrefix(line, "fatal: "); found {
			return text
		}
	}
	if said = strings.TrimSpace(said); said != "" {
		return said
	}
	return err.Error()
}
