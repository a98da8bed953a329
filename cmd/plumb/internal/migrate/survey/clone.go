// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/worktree"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/payload"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// origin is where the files of a repository are read.
type origin struct {
	plan.Source
	defaultBranch string
	// project is the service's id of the repository; 0 if it is not known.
	project int64
	// has reports whether a commit can be read; nil is always.
	has func(ctx context.Context, sha string) bool
}

// clone reads a local clone. It implements plan.Source.
type clone struct {
	tree          *worktree.Tree
	defaultBranch string
}

// clones opens each clone in a directory, or in the directories of that, by the canonical URL of
// its remote.
func clones(ctx context.Context, dir string) (map[string]*worktree.Tree, error) {
	trees := map[string]*worktree.Tree{}
	for _, pattern := range []string{"*", "*/*"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern, ".git"))
		if err != nil {
			return nil, fmt.Errorf("--clones %s: %w", dir, err)
		}
		for _, at := range found {
			tree, err := worktree.Open(ctx, filepath.Dir(at))
			if err != nil {
				return nil, fmt.Errorf("--clones: %w", err)
			}
			remote, err := tree.URL(ctx)
			if err != nil {
				continue // a repository of no Git service
			}
			if canonical, err := v1alpha1.CanonicalURL(remote); err == nil {
				trees[canonical] = tree
			}
		}
	}
	if len(trees) > 0 {
		return trees, nil
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("--clones: %w", err)
	}
	return nil, fmt.Errorf("--clones: neither %s nor its directories have a clone: git clone each repository there", dir)
}

// cloneOf returns the clone of a repository.
func cloneOf(ctx context.Context, trees map[string]*worktree.Tree, url string) (*origin, bool) {
	canonical, err := v1alpha1.CanonicalURL(url)
	tree := trees[canonical]
	if err != nil || tree == nil {
		return nil, false
	}
	c := &clone{tree, tree.DefaultBranch(ctx)}
	return &origin{Source: c, defaultBranch: c.defaultBranch, has: tree.Has}, true
}

// Head implements plan.Source.
func (c *clone) Head(ctx context.Context, event *v1alpha1.GitEventSpec) (git.Head, error) {
	commit, err := c.tree.Commit(ctx, event.SHA)
	return git.Head{
		SHA: event.SHA, Project: event.Project, Ref: event.HeadRef, PullRequest: event.PullRequest,
		Commit: v1alpha1.Commit{
			Title: text.FirstLine(commit.Message, payload.MaxTitle), SkipCI: provider.SkipsCI(commit.Message),
		},
	}, err
}

// Files implements plan.Source.
func (c *clone) Files(ctx context.Context, sha, dir string) ([]git.File, error) {
	return c.tree.Files(ctx, sha, dir)
}

// File implements plan.Source.
func (c *clone) File(ctx context.Context, sha, name string) ([]byte, error) {
	return c.tree.File(ctx, sha, name)
}

var errMerged = errors.New("the pull request is merged, so the clone does not say which files it changed")

// Changed implements plan.Source. The PipelineRuns of a push do not say how many commits it had, so
// it is taken for one of the last commit alone.
func (c *clone) Changed(ctx context.Context, event *v1alpha1.GitEventSpec) (git.Changes, error) {
	if event.PullRequest == nil {
		return c.tree.OfCommit(ctx, event.SHA)
	}
	changes, err := c.tree.SinceBase(ctx, event.BaseRef, event.SHA)
	if err == nil && len(changes.Added)+len(changes.Modified)+len(changes.Deleted)+len(changes.Renamed) == 0 {
		return changes, errMerged
	}
	return changes, err
}

// DefaultBranch implements plan.Source.
func (c *clone) DefaultBranch(ctx context.Context) (string, error) {
	sha, found := c.tree.Tip(ctx, c.defaultBranch)
	if !found {
		return "", fmt.Errorf("the clone has no branch %s: git fetch it", c.defaultBranch)
	}
	return sha, nil
}
