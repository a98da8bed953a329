// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"context"

	gl "github.com/xanzy/go-gitlab"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/api"
)

// Versions implements provider.History. It waits until the newest version is the event's head.
func (r *repository) Versions(ctx context.Context, event *v1alpha1.GitEventSpec) ([]git.Version, error) {
	listed, err := r.versions(ctx, event)
	if err != nil {
		return nil, err
	}
	var all []git.Version
	for _, v := range listed {
		if v.CreatedAt == nil || !provider.IsSHA(v.HeadCommitSHA) {
			return nil, api.NoAnswer("listing the merge request's versions")
		}
		all = append(all, git.Version{SHA: v.HeadCommitSHA, Since: eventTime(v.CreatedAt).Time})
	}
	if len(all) == 0 || all[0].SHA != event.SHA {
		return nil, fault.Transientf(fault.ReasonNotConfirmed,
			"GitLab does not show (yet) since when %s is the head of merge request !%d", event.SHA, event.PullRequest.Number)
	}
	return all, nil
}

// versions returns the heads that the event's merge request has had, newest first. Each push adds
// one, and so does a new target branch
// (https://docs.gitlab.com/api/merge_requests/#get-merge-request-diff-versions).
func (r *repository) versions(
	ctx context.Context, event *v1alpha1.GitEventSpec,
) ([]*gl.MergeRequestDiffVersion, error) {
	const what = "listing the merge request's versions"
	versions, err := api.List(
		ctx,
		what,
		func(page ...gl.RequestOptionFunc) ([]*gl.MergeRequestDiffVersion, *gl.Response, error) {
			return r.Client.MergeRequests.GetMergeRequestDiffVersions(r.Path, int(event.PullRequest.Number), nil, page...)
		},
	)
	if err != nil {
		return nil, provider.Failed(what, err)
	}
	return newest(versions, func(v *gl.MergeRequestDiffVersion) int { return v.ID }), nil
}
