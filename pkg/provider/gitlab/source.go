// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"path"
	"slices"
	"strings"

	gl "github.com/xanzy/go-gitlab"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/api"
	"github.com/plumbline-ci/plumbline/pkg/provider/payload"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// Head implements provider.Source. It calls GitLab only if the payload does not describe the
// commit.
//
// All reads are of the event's own project, the target of a merge request. It has a fork's commits
// too: GitLab fetches them to refs/merge-requests/<iid>/head before it shows the merge request
// (https://docs.gitlab.com/user/project/merge_requests/versions/, gitlab-foss#3138). So no fork
// needs to be readable.
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
	commit, err := r.commit(ctx, event.SHA)
	if err != nil {
		return git.Head{}, r.Unavailable(ctx, what, event.SHA, err)
	}
	if commit.ID != event.SHA {
		return git.Head{}, fault.Transientf(provider.ReasonBadAnswer, "%s: GitLab answered with another commit", what)
	}
	head.Commit = v1alpha1.Commit{
		Title: text.FirstLine(commit.Message, payload.MaxTitle), URL: commit.WebURL, SkipCI: provider.SkipsCI(commit.Message),
	}
	return head, nil
}

func (r *repository) commit(ctx context.Context, sha string) (*gl.Commit, error) {
	commit, _, err := r.Client.Commits.GetCommit(r.Path, sha, &gl.GetCommitOptions{Stats: gl.Ptr(false)},
		gl.WithContext(ctx))
	return commit, err
}

// DefaultBranch implements provider.Source. It reads the branch's name too, because the branch may
// have been renamed since the delivery.
func (r *repository) DefaultBranch(ctx context.Context) (string, error) {
	described, err := r.Describe(ctx)
	if err != nil {
		return "", err
	}
	what := "reading the default branch " + described.DefaultBranch
	if described.DefaultBranch == "" {
		return "", fault.Transientf(reasonRepositoryEmpty, "%s: %s is empty", what, r.Path)
	}
	branch, _, err := r.Client.Branches.GetBranch(r.Path, described.DefaultBranch, gl.WithContext(ctx))
	if provider.StatusCode(err) == http.StatusNotFound {
		return "", fault.Transientf(fault.ReasonCommitUnknown, "%s: %s has no such branch (yet)", what, r.Path)
	}
	if err != nil {
		return "", provider.Failed(what, err)
	}
	if branch.Commit == nil || !provider.IsSHA(branch.Commit.ID) {
		return "", fault.Transientf(provider.ReasonBadAnswer, "%s: GitLab names no commit", what)
	}
	return branch.Commit.ID, nil
}

// Files returns the YAML files below dir at sha, sorted by path, with their content unchanged.
func (r *repository) Files(ctx context.Context, sha, dir string) ([]git.File, error) {
	if err := provider.CheckSHA(sha); err != nil {
		return nil, err
	}
	dir = path.Clean(dir)
	found, err := r.entry(ctx, sha, dir)
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return nil, nil
	case found.Type != "tree":
		return nil, provider.NotDirectory(dir, found.Mode)
	case !provider.IsSHA(found.ID):
		return nil, api.NoAnswer("reading " + dir)
	}
	id := provider.TreeID{Reader: r.reader, ID: found.ID, Dir: dir}
	list := func() ([]provider.Definition, error) { return r.definitions(ctx, sha, dir) }
	return r.trees.Files(ctx, id, list, func(ctx context.Context, file provider.Definition) ([]byte, error) {
		data, err := r.contents(ctx, r.Path, sha, file.Path)
		if provider.StatusCode(err) == http.StatusNotFound {
			// A tree that was just read has it, so the answer comes from a stale replica.
			return nil, fault.Transientf(fault.ReasonCommitUnknown, "GitLab does not show %s (yet)", file.Path)
		}
		return data, err
	})
}

// definitions lists the YAML files below a directory.
func (r *repository) definitions(ctx context.Context, sha, dir string) ([]provider.Definition, error) {
	entries, err := r.tree(ctx, sha, dir, true)
	if err != nil {
		return nil, r.Unavailable(ctx, "reading "+dir, sha, err)
	}
	var found []provider.Definition
	for _, e := range entries {
		if e.Type == "blob" && e.Mode != provider.ModeLink && provider.IsDefinition(e.Path) &&
			strings.HasPrefix(e.Path, dir+"/") {
			found = append(found, provider.Definition{Path: e.Path, ID: e.ID})
		}
	}
	return found, nil
}

// entry returns the entry at a path of the commit, nil if there is none. It lists the directory
// above, because GitLab answers 404 for a missing entry and for a commit that a replica does not
// have yet. One list is certain, because the commit fixes its content.
func (r *repository) entry(ctx context.Context, sha, name string) (*gl.TreeNode, error) {
	segments := strings.Split(name, "/")
	for i, parent := 0, ""; ; i++ {
		entries, err := r.tree(ctx, sha, parent, false)
		if err != nil {
			return nil, r.Unavailable(ctx, "reading "+name, sha, err)
		}
		at := slices.IndexFunc(entries, func(e *gl.TreeNode) bool { return e.Name == segments[i] })
		switch {
		case at < 0:
			return nil, nil
		case i == len(segments)-1:
			return entries[at], nil
		case entries[at].Type != "tree":
			return nil, nil
		}
		parent = path.Join(parent, segments[i])
	}
}

// tree lists a directory by keyset pages, the kind without a limit. Without a commit it is the
// default branch's
// (https://docs.gitlab.com/api/repositories/#list-all-repository-trees-in-a-project).
func (r *repository) tree(ctx context.Context, sha, dir string, recursive bool) ([]*gl.TreeNode, error) {
	opts := &gl.ListTreeOptions{Recursive: &recursive, ListOptions: gl.ListOptions{Pagination: "keyset"}}
	if sha != "" {
		opts.Ref = &sha
	}
	if dir != "" {
		opts.Path = &dir
	}
	what := "reading " + cmp.Or(dir, "the root directory")
	entries, err := api.List(ctx, what, func(page ...gl.RequestOptionFunc) ([]*gl.TreeNode, *gl.Response, error) {
		return r.Client.Repositories.ListTree(r.Path, opts, page...)
	})
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		// Any other list of objects would be decoded as a directory without files.
		if e.Name == "" || e.Type == "" || !strings.HasPrefix("/"+e.Path, path.Join("/", dir)) {
			return nil, api.NoAnswer(what)
		}
	}
	return entries, nil
}

// File returns one file of at most 1 MiB.
func (r *repository) File(ctx context.Context, sha, name string) ([]byte, error) {
	if err := provider.CheckSHA(sha); err != nil {
		return nil, err
	}
	if err := provider.CheckPath(name); err != nil {
		return nil, err
	}
	data, err := r.contents(ctx, r.Path, sha, name)
	if provider.StatusCode(err) != http.StatusNotFound {
		return data, err
	}
	// GitLab answers 404 for a missing file and for a commit that is not there yet.
	found, err := r.entry(ctx, sha, name)
	switch {
	case err != nil:
		return nil, err
	case found != nil && found.Type == "blob":
		return nil, fault.Transientf(fault.ReasonCommitUnknown, "GitLab does not show %s (yet)", name)
	}
	return nil, fault.Invalidf(reasonFileNotFound, "%s does not exist in %s at commit %s", name, r.Path, sha)
}

// contents reads a file of a project as JSON, which a proxy's page is not, and checks its digest. A
// page that was taken for a definition would be reported as the author's mistake.
func (r *repository) contents(ctx context.Context, project, ref, name string) ([]byte, error) {
	what := "reading " + name
	file, _, err := r.Client.RepositoryFiles.GetFile(project, name, &gl.GetFileOptions{Ref: &ref}, gl.WithContext(ctx))
	switch {
	case errors.Is(err, provider.ErrTooLarge):
		return nil, fault.Invalidf(reasonFileTooLarge, "%s is far larger than the limit of %d bytes: make it smaller",
			name, provider.MaxFile)
	case err != nil:
		return nil, provider.Failed(what, err)
	case file.Size > provider.MaxFile:
		return nil, provider.TooLarge(name, file.Size)
	}
	data, err := base64.StdEncoding.DecodeString(file.Content)
	sum := sha256.Sum256(data)
	if err != nil || len(data) != file.Size || file.Encoding != "base64" || file.SHA256 != hex.EncodeToString(sum[:]) {
		return nil, fault.Transientf(provider.ReasonBadAnswer, "%s: GitLab's answer does not hold the file", what)
	}
	return data, nil
}
