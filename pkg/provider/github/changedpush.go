// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/limits"
)

const comparing = "comparing with the commit before the push"

// changedByPush lists the files that differ between two commits. GitHub compares the second commit
// with the merge base (https://docs.github.com/rest/commits/commits#compare-two-commits), which is
// the first commit only in a fast-forward. For every other push both directions are needed. Only a
// fast-forward of fewer than MaxCompared files shows renames.
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

// changedByGroup lists the files that a merge group would change in its base branch. The commit
// before a group is that of the group ahead of it in the queue. GitHub may merge both by the checks
// of the last one alone (docs/adr/0059), so what the groups ahead change counts, too.
func (r *repository) changedByGroup(ctx context.Context, event *v1alpha1.GitEventSpec) (git.Changes, error) {
	tip, err := r.BranchTip(ctx, event.BaseRef)
	if err != nil {
		return git.Changes{}, err
	}
	before := event.Before
	if tip != "" && tip != before {
		diff, err := r.compare(ctx, tip, event.SHA)
		if err != nil {
			return git.Changes{}, r.unavailable(ctx, comparing, event.SHA, err)
		}
		switch base := diff.GetMergeBaseCommit().GetSHA(); base {
		case "":
			return git.Changes{}, noAnswer(comparing)
		case event.SHA: // it is merged already
		default:
			before = base
		}
	}
	return r.changedByPush(ctx, before, event.SHA)
}

func (r *repository) compare(ctx context.Context, base, head string) (*gh.CommitsComparison, error) {
	page := &gh.ListOptions{PerPage: 1} // of commits; the first page has all files
	diff, _, err := r.client.Repositories.CompareCommits(ctx, r.owner, r.name, base, head, page)
	if err == nil && diff.GetStatus() == "" {
		return nil, noAnswer(comparing)
	}
	return diff, err
}

// changedApart lists the files that differ between two commits with unrelated histories. The first
// commit may also be gone for good. Then only the head commit's own files can be listed.
func (r *repository) changedApart(ctx context.Context, before, after string) (git.Changes, error) {
	return r.treesOr(ctx, before, after, func() (git.Changes, error) {
		own, err := r.changedByCommit(ctx, after)
		own.Truncated = true
		return own, err
	})
}

// changedOnBothSides lists the files that differ between two diverged histories, from the changes
// of each since their merge base.
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
	found := joinSides(then, now)
	base := forward.GetMergeBaseCommit().GetSHA()
	found.Truncated = max(len(forward.Files), len(backward.Files)) >= provider.MaxCompared ||
		base == "" || base != backward.GetMergeBaseCommit().GetSHA() // there may be several merge bases
	return found, nil
}

// side has the changes of one history by path. A renamed file counts as one removed and one added.
type side map[string]change

// change is the change of a file: its new digest, and GitHub's status.
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

// joinSides lists the files that differ between two commits, from the changes of each since the
// same third one.
func joinSides(then, now side) (out git.Changes) {
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

// treesOr compares the trees of two commits. If GitHub does not list them completely, it returns
// other().
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
	return joinSides(then, now), nil
}

// leaves lists the files of a commit. It returns nil if GitHub truncates the list, or the answer is
// too large.
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
