// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// Pulls lists the pull requests of a commit. For a commit of the default branch GitHub lists the
// merged one that added it
// (https://docs.github.com/rest/commits/commits#list-pull-requests-associated-with-a-commit).
func (r *repository) Pulls(ctx context.Context, sha string) ([]git.Pull, error) {
	if err := provider.CheckSHA(sha); err != nil {
		return nil, err
	}
	const what = "listing the commit's pull requests"
	var pulls []git.Pull
	opts := &gh.ListOptions{PerPage: perPage}
	ctx = provider.Pages(ctx)
	for range maxPages {
		part, resp, err := r.client.PullRequests.ListPullRequestsWithCommit(ctx, r.owner, r.name, sha, opts)
		if err != nil {
			return nil, r.unavailable(ctx, what, sha, err)
		}
		if part == nil {
			return nil, noAnswer(what)
		}
		for _, p := range part {
			if p.GetNumber() <= 0 || p.GetState() == "" {
				return nil, fault.Transientf(provider.ReasonBadAnswer, "%s: GitHub answered with one that has no number or state", what)
			}
			if p.GetBase().GetRepo().GetID() != r.id {
				continue // a fork's own pull requests contain the commit too
			}
			pull := pullOf(p)
			if pull.BaseRef == "" || pull.HeadRef == "" {
				return nil, fault.Transientf(provider.ReasonBadAnswer, "%s: GitHub answered with one that has no branches", what)
			}
			pulls = append(pulls, pull)
		}
		if resp.NextPage == 0 {
			break
		}
		opts.Page = resp.NextPage
	}
	return pulls, nil
}

func pullOf(p *gh.PullRequest) git.Pull {
	return git.Pull{
		Number: int64(p.GetNumber()), Open: p.GetState() == "open", Merged: p.MergedAt != nil, SHA: p.GetHead().GetSHA(),
		BaseRef: p.GetBase().GetRef(), HeadRef: p.GetHead().GetRef(), HeadProjectID: p.GetHead().GetRepo().GetID(),
	}
}
