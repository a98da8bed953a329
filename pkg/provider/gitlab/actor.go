// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"cmp"
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

// confirmWithin is how long after its receipt an event waits for GitLab to show who acted. GitLab
// writes the activity of a push in a background job, which may end after the one that calls the
// webhook; and a replica may lag.
const confirmWithin = 2 * time.Minute

// acted is what GitLab says of who acted.
type acted struct {
	// by is the username, "" for nobody.
	by string
	// final is true if GitLab will say the same later.
	final bool
}

// Actor returns who has acted on the event's merge request as GitLab itself has it: told is only
// what the delivery says. A label counts for whoever set one last. For everything else somebody
// must answer for the head as it is: the author if the merge request was opened with it, who
// reopened the merge request while it was the head, else who pushed it.
func (r *repository) Actor(ctx context.Context, event *v1alpha1.GitEventSpec, told string) (string, error) {
	who, err := r.acted(ctx, event)
	if err != nil {
		return "", err
	}
	if strings.EqualFold(who.by, told) {
		return who.by, nil
	}
	if !who.final && r.now().Sub(event.ReceivedAt.Time) < confirmWithin {
		return "", fault.Transientf(
			fault.ReasonNotConfirmed,
			"GitLab does not say (yet) that %s has changed merge request !%d",
			told,
			event.PullRequest.Number,
		)
	}
	return who.by, nil
}

func (r *repository) acted(ctx context.Context, event *v1alpha1.GitEventSpec) (acted, error) {
	var by string
	var err error
	switch {
	case event.EventType == delivery.TypeLabels:
		by, err = r.labelledBy(ctx, event)
		return acted{by: by}, err
	case event.Action == "open":
		by, err = r.openedBy(ctx, event)
	case event.Action == "reopen":
		by, err = r.reopenedBy(ctx, event)
	default:
		return r.pushedBy(ctx, event)
	}
	if err != nil || by != "" {
		return acted{by: by}, err
	}
	who, err := r.pushedBy(ctx, event)
	who.final = false // what was looked for first may still come
	return who, err
}

// openedBy returns the author if the event's commit is the first head of the merge request.
// Whatever came later may have been pushed by others.
func (r *repository) openedBy(ctx context.Context, event *v1alpha1.GitEventSpec) (string, error) {
	versions, err := r.versions(ctx, event)
	if err != nil || len(versions) == 0 || versions[len(versions)-1].HeadCommitSHA != event.SHA {
		return "", err
	}
	return event.PullRequest.Author, nil
}

// reopenedBy returns who opened the merge request again last, "" if that was before its head was
// pushed.
func (r *repository) reopenedBy(ctx context.Context, event *v1alpha1.GitEventSpec) (string, error) {
	const what = "listing who closed and opened the merge request"
	states, err := api.List(ctx, what, func(page ...gl.RequestOptionFunc) ([]*gl.StateEvent, *gl.Response, error) {
		return r.Client.ResourceStateEvents.ListMergeStateEvents(r.Path, int(event.PullRequest.Number), nil, page...)
	})
	if err != nil {
		return "", provider.Failed(what, err)
	}
	for _, s := range newest(states, func(s *gl.StateEvent) int { return s.ID }) {
		if s.State != "reopened" {
			continue
		}
		if s.User == nil || s.CreatedAt == nil {
			return "", nil // of an account that was deleted
		}
		return r.sinceHead(ctx, event, s.User.Username, *s.CreatedAt)
	}
	return "", nil
}

// labelledBy returns who set a label last, "" if that was before a fork's head was pushed. Into the
// project itself only those push who may write.
func (r *repository) labelledBy(ctx context.Context, event *v1alpha1.GitEventSpec) (string, error) {
	const what = "listing who set labels"
	labels, err := api.List(ctx, what, func(page ...gl.RequestOptionFunc) ([]*gl.LabelEvent, *gl.Response, error) {
		return r.Client.ResourceLabelEvents.ListMergeRequestsLabelEvents(r.Path, int(event.PullRequest.Number), nil, page...)
	})
	if err != nil {
		return "", provider.Failed(what, err)
	}
	for _, l := range newest(labels, func(l *gl.LabelEvent) int { return l.ID }) {
		switch {
		case l.Action != "add":
			continue
		case l.CreatedAt == nil:
			return "", api.NoAnswer(what)
		case event.PullRequest.HeadProjectID == r.ID:
			return l.User.Username, nil
		}
		return r.sinceHead(ctx, event, l.User.Username, *l.CreatedAt)
	}
	return "", nil
}

// newest sorts what happened to a merge request, the newest first. GitLab lists it in no particular
// order: a row that it has changed since, e.g. for a label that was renamed, may move.
func newest[T any](all []T, id func(T) int) []T {
	return slices.SortedFunc(slices.Values(all), func(a, b T) int { return cmp.Compare(id(b), id(a)) })
}

// sinceHead returns who did something, if the event's commit was the merge request's head by then.
func (r *repository) sinceHead(
	ctx context.Context,
	event *v1alpha1.GitEventSpec,
	who string,
	at time.Time,
) (string, error) {
	versions, err := r.versions(ctx, event)
	if err != nil {
		return "", err
	}
	for _, v := range versions { // newest first; a new target branch makes a version of the same head
		if v.HeadCommitSHA != event.SHA || v.CreatedAt == nil {
			break
		}
		if !at.Before(*v.CreatedAt) {
			return who, nil
		}
	}
	return "", nil
}

// pushedBy returns who pushed the event's commit to the merge request's branch last, as the
// activity of the source project has it. What the token may not see confirms nothing.
func (r *repository) pushedBy(ctx context.Context, event *v1alpha1.GitEventSpec) (acted, error) {
	source := int(event.PullRequest.HeadProjectID)
	if source <= 0 { // the fork was deleted
		return acted{final: true}, nil
	}
	push, err := r.findPush(ctx, source, event.ReceivedAt.Time, func(a *gl.ProjectEvent) bool {
		return a.PushData.CommitTo == event.SHA && a.PushData.RefType == "branch" && a.PushData.Ref == event.HeadRef
	})
	if code := provider.StatusCode(err); code == http.StatusNotFound || code == http.StatusForbidden {
		return acted{final: true}, nil
	}
	if err != nil || push == nil {
		return acted{}, err
	}
	return acted{by: push.AuthorUsername, final: true}, nil
}
