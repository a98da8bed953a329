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

// clones opens the clones in the directory of --clones, at most three levels down, by the canonical
// URL of their remote.
func (s *surveyor) clones(ctx context.Context) (map[string]*worktree.Tree, error) {
	if _, err := os.Stat(s.Clones); err != nil {
		return nil, fmt.Errorf("--clones: %w", err)
	}
	trees := map[string]*worktree.Tree{}
	for _, pattern := range []string{"", "*", "*/*", "*/*/*"} {
		found, err := filepath.Glob(filepath.Join(s.Clones, pattern, ".git"))
		if err != nil {
			return nil, fmt.Errorf("--clones %s: %w", s.Clones, err)
		}
		for _, at := range found {
			if err := open(ctx, filepath.Dir(at), trees); err != nil {
				s.skip("a clone cannot be read", "", filepath.Dir(at)+" ("+err.Error()+")")
			}
		}
	}
	if len(trees) == 0 {
		return nil, fmt.Errorf("--clones: %s has no clone that can be read: git clone each repository there", s.Clones)
	}
	return trees, nil
}

func open(ctx context.Context, dir string, trees map[string]*worktree.Tree) error {
	tree, err := worktree.Open(ctx, dir)
	if err != nil {
		return err
	}
	remote, err := tree.URL(ctx)
	if err != nil {
		return err
	}
	canonical, err := v1alpha1.CanonicalURL(remote)
	if err != nil {
		return err
	}
	trees[canonical] = tree
	return nil
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
