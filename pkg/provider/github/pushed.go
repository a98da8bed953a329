// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/limits"
)

const comparing = "comparing with the commit before the push"

// changedByPush lists what differs between the trees of two commits. GitHub compares the second one
// with where the two histories part
// (https://docs.github.com/rest/commits/commits#compare-two-commits), which is the first one only
// in a fast-forward: of every other push both sides are needed. Only a fast-forward of fewer than
// MaxCompared files tells renames.
func (r *repository) changedByPush(ctx context.Context, before, after string) (git.Changes, error) {
	if err := provider.CheckSHA(before); err != nil {
		return git.Changes{}, err
	}
	forward, err := r.compare(ctx, before, after)
	if provider.StatusCode(err) == http.StatusNotFound {
		return r.changedApart(ctx, before, after)
	}
	if err != nil {
		return git.Changes{}, limits.Failed(comparing, err)
	}
	found, err := changes(comparing, forward.Files, provider.MaxCompared)
	if status := forward.GetStatus(); err == nil && status != "ahead" && status != "identical" {
		found, err = r.changedOnBothSides(ctx, forward, before, after)
	}
	if err != nil || !found.Truncated {
		return found, err
	}
	return r.treesOr(ctx, before, after, func() (git.Changes, error) { return found, nil })
}

func (r *repository) compare(ctx context.Context, base, head string) (*gh.CommitsComparison, error) {
	page := &gh.ListOptions{PerPage: 1} // of commits: the first one has all files
	diff, _, err := r.client.Repositories.CompareCommits(ctx, r.owner, r.name, base, head, page)
	if err == nil && diff.GetStatus() == "" {
		return nil, noAnswer(comparing)
	}
	return diff, err
}

// changedApart lists what differs between two commits whose histories have nothing in common. The
// first one may also be gone for good: then the head commit's own files are all that GitHub knows.
func (r *repository) changedApart(ctx context.Context, before, after string) (git.Changes, error) {
	return r.treesOr(ctx, before, after, func() (git.Changes, error) {
		own, err := r.changedByCommit(ctx, after)
		own.Truncated = true
		return own, err
	})
}

// changedOnBothSides lists what differs where two histories have parted, by what each of them has
// changed since.
func (r *repository) changedOnBothSides(
	ctx context.Context, forward *gh.CommitsComparison, before, after string,
) (git.Changes, error) {
	backward, err := r.compare(ctx, after, before)
	if err != nil {
		return git.Changes{}, r.unavailable(ctx, comparing, before, err)
	}
	now, err := sideOf(forward.Files)
	if err != nil {
		return git.Changes{}, err
	}
	then, err := sideOf(backward.Files)
	if err != nil {
		return git.Changes{}, err
	}
	found := joined(then, now)
	base := forward.GetMergeBaseCommit().GetSHA()
	found.Truncated = max(len(forward.Files), len(backward.Files)) >= provider.MaxCompared ||
		base == "" || base != backward.GetMergeBaseCommit().GetSHA() // several commits may be where they part
	return found, nil
}

// side is what one history has changed, by path. A file that was renamed is one that was removed
// and one that was added.
type side map[string]change

// change is what became of a file: its digest, and GitHub's word for it.
type change struct{ id, status string }

func sideOf(files []*gh.CommitFile) (side, error) {
	all := side{}
	for _, f := range files {
		if f.GetFilename() == "" || f.GetStatus() == "" || f.GetStatus() == "renamed" && f.GetPreviousFilename() == "" {
			return nil, noAnswer(comparing)
		}
		switch f.GetStatus() {
		case "unchanged":
		case "renamed":
			all[f.GetPreviousFilename()] = change{status: "removed"}
			all[f.GetFilename()] = change{f.GetSHA(), "added"}
		case "copied":
			all[f.GetFilename()] = change{f.GetSHA(), "added"}
		case "removed":
			all[f.GetFilename()] = change{status: "removed"}
		default:
			all[f.GetFilename()] = change{f.GetSHA(), f.GetStatus()}
		}
	}
	return all, nil
}

// joined lists what differs between two commits by what each has changed of the same third one.
func joined(then, now side) (out git.Changes) {
	paths := maps.Clone(then)
	maps.Copy(paths, now)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		was, changedThen := then[path]
		is, changedNow := now[path]
		switch {
		case was == is:
		case changedNow && is.status == "removed", !changedNow && was.status == "added":
			out.Deleted = append(out.Deleted, path)
		case changedThen && was.status == "removed", !changedThen && is.status == "added":
			out.Added = append(out.Added, path)
		default:
			out.Modified = append(out.Modified, path)
		}
	}
	return out
}

// treesOr compares the trees of two commits, and takes something else where GitHub does not list
// them whole.
func (r *repository) treesOr(
	ctx context.Context, before, after string, other func() (git.Changes, error),
) (git.Changes, error) {
	then, err := r.leaves(ctx, before)
	if provider.StatusCode(err) == http.StatusNotFound {
		return other()
	}
	if err != nil {
		return git.Changes{}, limits.Failed(comparing, err)
	}
	if then == nil {
		return other()
	}
	now, err := r.leaves(ctx, after)
	if err != nil {
		return git.Changes{}, r.unavailable(ctx, comparing, after, err)
	}
	if now == nil {
		return other()
	}
	return joined(then, now), nil
}

// leaves lists the files of a commit, nil if GitHub does not list all of them, or more than is
// read.
func (r *repository) leaves(ctx context.Context, sha string) (side, error) {
	tree, _, err := r.client.Git.GetTree(ctx, r.owner, r.name, sha, true)
	switch {
	case errors.Is(err, provider.ErrTooLarge), err == nil && tree.GetTruncated():
		return nil, nil
	case err != nil:
		return nil, err
	case !isTree(tree):
		return nil, noAnswer(comparing)
	}
	all := side{}
	for _, e := range tree.Entries {
		if e.GetType() != "tree" {
			all[e.GetPath()] = change{e.GetMode() + " " + e.GetSHA(), "added"}
		}
	}
	return all, nil
}
