// SPDX-License-Identifier: Apache-2.0

package github

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/limits"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// find lists the commit's check runs that are this check, newest first, including the known one.
func (r *repository) find(ctx context.Context, sha string, known int64, check status.Check) ([]*gh.CheckRun, error) {
	ours, err := r.named(ctx, sha, check)
	if err != nil {
		return nil, err
	}
	ours = slices.DeleteFunc(ours, func(run *gh.CheckRun) bool { return !check.HasExternalID(run.GetExternalID()) })
	if known != 0 && !slices.ContainsFunc(ours, func(run *gh.CheckRun) bool { return run.GetID() == known }) {
		run, err := r.get(ctx, known)
		if err != nil {
			return nil, err
		}
		if run != nil {
			ours = append(ours, run)
		}
	}
	slices.SortFunc(ours, func(a, b *gh.CheckRun) int { return cmp.Compare(b.GetID(), a.GetID()) })
	return ours, nil
}

// named lists the commit's check runs of our App with the check's name.
func (r *repository) named(ctx context.Context, sha string, check status.Check) (all []*gh.CheckRun, err error) {
	opts := &gh.ListCheckRunsOptions{
		CheckName: gh.String(checkName(check)), AppID: gh.Int64(r.app), Filter: gh.String("all"),
		ListOptions: gh.ListOptions{PerPage: perPage},
	}
	ctx = provider.Pages(ctx)
	for range maxPages {
		part, resp, err := r.client.Checks.ListCheckRunsForRef(ctx, r.owner, r.name, sha, opts)
		if err != nil {
			return nil, r.unavailable(ctx, "looking the check up", sha, err)
		}
		if incompleteList(part, opts.Page) {
			return nil, noAnswer("looking the check up")
		}
		more, err := r.filterOurs(part.CheckRuns)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
		if opts.Page = resp.NextPage; opts.Page == 0 {
			return all, nil
		}
	}
	return nil, fault.Operatorf(reasonTooMany, "looking the check up: GitHub lists more than %d of the name",
		maxPages*perPage)
}

// incompleteList reports whether an answer is not the requested list: a list has a total, and a
// non-empty list has entries on its first page.
func incompleteList(part *gh.ListCheckRunsResults, page int) bool {
	return part == nil || part.Total == nil || page == 0 && *part.Total > 0 && len(part.CheckRuns) == 0
}

// filterOurs returns the check runs of a list that are of our App, by which GitHub has filtered the
// list. An entry without enough fields to decide is an error: if it were taken for another App's, a
// second check would be created.
func (r *repository) filterOurs(runs []*gh.CheckRun) (ours []*gh.CheckRun, err error) {
	for _, run := range runs {
		switch {
		case r.isOtherApps(run):
		case run.GetID() == 0 || run.ExternalID == nil && run.GetApp().GetID() == 0:
			return nil, noAnswer("looking the check up")
		default:
			ours = append(ours, run)
		}
	}
	return ours, nil
}

// isOtherApps reports whether a check run names another App than ours. Not every server names one.
func (r *repository) isOtherApps(run *gh.CheckRun) bool {
	id := run.GetApp().GetID()
	return id != 0 && id != r.app
}

// get returns nil for a check run that does not exist in a readable repository.
func (r *repository) get(ctx context.Context, id int64) (*gh.CheckRun, error) {
	const what = "reading the check"
	run, _, err := r.client.Checks.GetCheckRun(ctx, r.owner, r.name, id)
	if provider.StatusCode(err) == http.StatusNotFound {
		if err := r.readable(ctx); err != nil {
			return nil, wrapf(what, err)
		}
		return nil, nil
	}
	if err != nil {
		return nil, limits.Failed(what, err)
	}
	return run, nil
}
