// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"fmt"
	"net/http"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/limits"
	"github.com/plumbline-ci/plumbline/pkg/provider/payload"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// Head implements provider.Source. It calls GitHub only if the payload does not describe the
// commit.
func (r *repository) Head(ctx context.Context, event *v1alpha1.GitEventSpec) (git.Head, error) {
	head := git.Head{SHA: event.SHA, Project: event.Project, Ref: event.HeadRef, PullRequest: event.PullRequest}
	if event.Commit != nil {
		head.Commit = *event.Commit
		return head, nil
	}
	if err := provider.CheckSHA(event.SHA); err != nil {
		return git.Head{}, err
	}
	what := "reading commit " + event.SHA
	commit, _, err := r.client.Repositories.GetCommit(ctx, r.owner, r.name, event.SHA, &gh.ListOptions{PerPage: 1})
	if err != nil {
		return git.Head{}, r.unavailable(ctx, what, event.SHA, err)
	}
	if commit.GetSHA() != event.SHA {
		return git.Head{}, fault.Transientf(provider.ReasonBadAnswer, "%s: GitHub answered with another commit", what)
	}
	message := commit.GetCommit().GetMessage()
	head.Commit = v1alpha1.Commit{
		Title:  text.FirstLine(message, payload.MaxTitle),
		URL:    commit.GetHTMLURL(),
		SkipCI: provider.SkipsCI(message),
	}
	return head, nil
}

// DefaultBranch implements provider.Source. It reads the branch's name too, because the branch may
// have been renamed since the delivery.
func (r *repository) DefaultBranch(ctx context.Context) (string, error) {
	described, err := r.describe(ctx)
	if err != nil {
		return "", err
	}
	what := "reading the default branch " + described.GetDefaultBranch()
	ref, _, err := r.client.Git.GetRef(ctx, r.owner, r.name, "heads/"+described.GetDefaultBranch())
	switch provider.StatusCode(err) {
	case http.StatusConflict:
		return "", fault.Transientf(reasonRepositoryEmpty, "%s: %s is empty", what, r.fullName())
	case http.StatusNotFound:
		return "", fault.Transientf(fault.ReasonCommitUnknown, "%s: %s has no such branch (yet)", what, r.fullName())
	}
	if err != nil {
		return "", limits.Failed(what, err)
	}
	sha := ref.GetObject().GetSHA()
	if !provider.IsSHA(sha) {
		return "", fault.Transientf(provider.ReasonBadAnswer, "%s: GitHub names no commit", what)
	}
	return sha, nil
}

// File returns one file of at most 1 MiB.
func (r *repository) File(ctx context.Context, sha, name string) ([]byte, error) {
	if err := provider.CheckSHA(sha); err != nil {
		return nil, err
	}
	if err := provider.CheckPath(name); err != nil {
		return nil, err
	}
	what := "reading " + name
	file, dir, _, err := r.client.Repositories.GetContents(ctx, r.owner, r.name, name,
		&gh.RepositoryContentGetOptions{Ref: sha})
	if err != nil {
		return nil, r.fileFailed(ctx, name, sha, err)
	}
	switch isFile, err := isFile(what, file, dir); {
	case err != nil:
		return nil, err
	case !isFile:
		return nil, fault.Invalidf(reasonFileNotFound, "%s is not a file at commit %s", name, sha)
	}
	return decoded(what, name, file)
}

// isFile reports whether a path of a repository is a file. One object is a file, a link or a
// submodule, a list is a directory
// (https://docs.github.com/rest/repos/contents#get-repository-content). Anything else is not an
// answer, and does not mean that the file is missing. Git has no empty directories.
func isFile(what string, file *gh.RepositoryContent, dir []*gh.RepositoryContent) (bool, error) {
	for _, entry := range dir {
		if entry.GetType() == "" || entry.GetPath() == "" {
			return false, noAnswer(what)
		}
	}
	switch kind := file.GetType(); {
	case kind == "file":
		return true, nil
	case len(dir) > 0, kind == "symlink", kind == "submodule":
		return false, nil
	}
	return false, noAnswer(what)
}

// decoded returns the content of a file if it is complete: it has the length that the answer names,
// or the id. For a link that GitHub has followed, the id may be of either.
func decoded(what, name string, file *gh.RepositoryContent) ([]byte, error) {
	if file.GetSize() > provider.MaxFile {
		return nil, provider.TooLarge(name, file.GetSize())
	}
	content, err := file.GetContent()
	if err != nil {
		return nil, limits.Failed(what, err)
	}
	data := []byte(content)
	if file.Content == nil || file.Size == nil || len(data) != file.GetSize() && !provider.IsBlob(file.GetSHA(), data) {
		return nil, noAnswer(what)
	}
	return data, nil
}

// fileFailed distinguishes a missing file from a stale replica, which both answer 404: it reads the
// directory.
func (r *repository) fileFailed(ctx context.Context, name, sha string, err error) error {
	if provider.StatusCode(err) != http.StatusNotFound {
		return r.unavailable(ctx, "reading "+name, sha, err)
	}
	found, err := r.entry(ctx, sha, name)
	switch {
	case err != nil:
		return err
	case found != nil:
		return fault.Transientf(fault.ReasonCommitUnknown, "GitHub does not show %s (yet)", name)
	}
	return fault.Invalidf(reasonFileNotFound, "%s does not exist in %s at commit %s", name, r.fullName(), sha)
}

func wrapf(what string, err error) error {
	return fmt.Errorf("%s: %w", what, err)
}
