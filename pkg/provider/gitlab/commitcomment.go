// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	gl "github.com/xanzy/go-gitlab"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/api"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/delivery"
)

// completeOnCommit confirms a comment on a commit, and completes it with the commit that its ref
// points to, or that of the default branch if it has none. GitLab's answer for a tag has the
// commit, also if the tag is annotated (https://docs.gitlab.com/api/tags/).
func (r *repository) completeOnCommit(
	ctx context.Context, event *v1alpha1.GitEventSpec, defaultBranch string,
) (*v1alpha1.GitEventSpec, error) {
	if err := provider.CheckSHA(event.SHA); err != nil {
		return nil, err
	}
	const what = "reading the comment on the commit"
	note, err := r.commitNote(ctx, what, event)
	if err != nil {
		return nil, err
	}
	body, written, err := checkNote(what, event, note)
	if err != nil {
		return nil, err
	}
	if event.BaseRef == "" && defaultBranch == "" {
		return nil, api.NoAnswer("reading the default branch")
	}
	ref := cmp.Or(event.BaseRef, "refs/heads/"+defaultBranch)
	kind, name := kindAndName(ref)
	now, err := r.at(ctx, kind, name)
	switch {
	case err != nil:
		return nil, err
	case now == nil:
		return nil, fault.Ignoredf(reasonRefNotFound, "nothing was done: %s has no %s", r.Path, ref)
	}
	out := event.DeepCopy()
	out.BaseRef, out.HeadRef, out.SHA = ref, ref, now.ID
	out.Comment.Body, out.HappenedAt, out.Commit = body, written, delivery.Commit(now.Message, now.WebURL)
	return out, nil
}

// commitNote returns the event's comment. GitLab lists a commit's comments without ids, so it lists
// the discussions; a comment that is not a reply is a discussion
// (https://docs.gitlab.com/api/discussions/).
func (r *repository) commitNote(ctx context.Context, what string, event *v1alpha1.GitEventSpec) (*gl.Note, error) {
	all, err := api.List(ctx, what, func(page ...gl.RequestOptionFunc) ([]*gl.Discussion, *gl.Response, error) {
		return r.Client.Discussions.ListCommitDiscussions(r.Path, event.SHA, nil, page...)
	})
	switch {
	case provider.StatusCode(err) == http.StatusNotFound: // a missing commit has no comments
		if err := r.Absent(ctx, what); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, provider.Failed(what, err)
	}
	for _, discussion := range all {
		at := slices.IndexFunc(discussion.Notes, func(n *gl.Note) bool { return n != nil && int64(n.ID) == event.Comment.ID })
		if at >= 0 {
			return discussion.Notes[at], nil
		}
	}
	return nil, fault.Transientf(fault.ReasonNotConfirmed, "GitLab shows no comment %d on commit %s (yet)",
		event.Comment.ID, event.SHA)
}
