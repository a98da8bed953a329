// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	gl "github.com/xanzy/go-gitlab"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/api"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/delivery"
)

const (
	// maxActivityPages is how many pages of a project's pushes are searched for a push whose ref
	// has moved on since. A redelivery may arrive after as many others. Pushes after the delivery
	// are skipped and do not count: an event may have waited for hours.
	maxActivityPages = 10
	// maxPassedPages is how many pages are skipped at most: 10,000 pushes.
	maxPassedPages = 100
	// clockSkew is how much GitLab's clock may be ahead of a receiver's.
	clockSkew = 5 * time.Minute
)

// completePush confirms that the ref is at the commit or, if it has moved on or was deleted, that
// it was. It is not enough that the ref's history contains the commit: a commit inside of a push
// was never the head of the ref.
func (r *repository) completePush(ctx context.Context, event *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
	if err := provider.CheckSHA(event.SHA); err != nil {
		return nil, err
	}
	kind, name := kindAndName(event.BaseRef)
	now, err := r.at(ctx, kind, name)
	if err != nil {
		return nil, err
	}
	out := event.DeepCopy()
	out.HeadRef = event.BaseRef
	if now != nil && now.ID == event.SHA {
		out.Commit = delivery.Commit(now.Message, now.WebURL)
		return out, nil
	}
	if err := r.wasPushed(ctx, kind, name, event); err != nil {
		return nil, err
	}
	out.Commit = nil // it is read from GitLab
	return out, nil
}

// kindAndName returns whether a full ref is a branch or a tag, and its short name.
func kindAndName(ref string) (kind, name string) {
	if tag, isTag := strings.CutPrefix(ref, "refs/tags/"); isTag {
		return "tag", tag
	}
	return "branch", strings.TrimPrefix(ref, "refs/heads/")
}

// at returns the commit that a branch or tag points to, nil if it does not exist.
func (r *repository) at(ctx context.Context, kind, name string) (*gl.Commit, error) {
	what := "reading where the " + kind + " is"
	var now *gl.Commit
	var err error
	if kind == "tag" {
		var tag *gl.Tag
		if tag, _, err = r.Client.Tags.GetTag(r.Path, name, gl.WithContext(ctx)); err == nil && tag != nil {
			now = tag.Commit
		}
	} else {
		var branch *gl.Branch
		if branch, _, err = r.Client.Branches.GetBranch(r.Path, name, gl.WithContext(ctx)); err == nil && branch != nil {
			now = branch.Commit
		}
	}
	switch {
	case provider.StatusCode(err) == http.StatusNotFound:
		return nil, r.Absent(ctx, what)
	case err != nil:
		return nil, provider.Failed(what, err)
	case now == nil || !provider.IsSHA(now.ID):
		return nil, api.NoAnswer(what)
	}
	return now, nil
}

// wasPushed returns nil if the project's activity has a push of the commit to the ref. GitLab
// records it before it calls webhooks (https://docs.gitlab.com/api/events/). A push of more refs at
// once than an administrator allows is one activity without refs. GitLab does not call a webhook
// for it either, unless that limit has another value.
func (r *repository) wasPushed(ctx context.Context, kind, name string, event *v1alpha1.GitEventSpec) error {
	sha := event.SHA
	push, err := r.findPush(ctx, r.Path, event.ReceivedAt.Time, func(a *gl.ProjectEvent) bool {
		return a.PushData.CommitTo == sha && a.PushData.RefType == kind && a.PushData.Ref == name
	})
	if provider.StatusCode(err) == http.StatusNotFound {
		err = r.Absent(ctx, listingPushes) // a project may hide its activity from the token
	}
	if err != nil || push != nil {
		return err
	}
	return fault.Transientf(fault.ReasonNotConfirmed, "%s %s is not at commit %s, and GitLab knows of no such push (yet)",
		kind, name, sha)
}

const listingPushes = "listing what was pushed"

// findPush searches the pushes of a project, given by path or id, before a delivery was received.
// It returns the newest match, nil if there is none.
func (r *repository) findPush(
	ctx context.Context, project any, received time.Time, is func(*gl.ProjectEvent) bool,
) (*gl.ProjectEvent, error) {
	pushed := gl.PushedEventType
	opts := &gl.ListProjectVisibleEventsOptions{
		Action:      &pushed,
		ListOptions: gl.ListOptions{PerPage: api.PerPage, Page: 1},
	}
	for looked := 0; looked < maxActivityPages && opts.Page <= maxPassedPages; {
		found, resp, err := r.Client.Events.ListProjectVisibleEvents(project, opts, gl.WithContext(ctx))
		switch {
		case err != nil:
			return nil, provider.Failed(listingPushes, err)
		case found == nil:
			return nil, api.NoAnswer(listingPushes)
		}
		if at := slices.IndexFunc(found, is); at >= 0 {
			return found[at], nil
		}
		if !allAfter(found, received.Add(clockSkew)) {
			looked++
		}
		if opts.Page = resp.NextPage; opts.Page == 0 {
			break
		}
	}
	return nil, nil
}

// allAfter reports whether everything on a page, which has the newest first, happened after moment.
func allAfter(page []*gl.ProjectEvent, moment time.Time) bool {
	if len(page) == 0 {
		return false
	}
	oldest, err := time.Parse(time.RFC3339, page[len(page)-1].CreatedAt)
	return err == nil && oldest.After(moment)
}
