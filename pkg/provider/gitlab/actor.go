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

// confirmWithin is how long after its receipt an event waits for GitLab to show the actor. GitLab
// records a push in a background job, which may run after the one that calls the webhook, and a
// replica may be stale.
const confirmWithin = 2 * time.Minute

// acted is what GitLab says about the actor.
type acted struct {
	// by is the username, "" if there is none.
	by string
	// final is true if GitLab's answer will not change.
	final bool
}

// Actor returns the actor of the merge request's event according to GitLab itself; reported is only
// what the delivery says. For a label it is the user who last set one. Otherwise it is the user who
// is responsible for the current head: the author if the merge request was opened with it, the user
// who reopened the merge request while it was the head, or the user who pushed it.
func (r *repository) Actor(ctx context.Context, event *v1alpha1.GitEventSpec, reported string) (string, error) {
	who, err := r.acted(ctx, event)
	if err != nil {
		return "", err
	}
	if strings.EqualFold(who.by, reported) {
		return who.by, nil
	}
	if !who.final && r.now().Sub(event.ReceivedAt.Time) < confirmWithin {
		return "", fault.Transientf(fault.ReasonNotConfirmed,
			"GitLab does not say (yet) that %s has changed merge request !%d", reported, event.PullRequest.Number)
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
	who.final = false // what was searched first may still appear
	return who, err
}

// openedBy returns the author if the event's commit is the first head of the merge request. Others
// may have pushed later heads.
func (r *repository) openedBy(ctx context.Context, event *v1alpha1.GitEventSpec) (string, error) {
	versions, err := r.versions(ctx, event)
	if err != nil || len(versions) == 0 || versions[len(versions)-1].HeadCommitSHA != event.SHA {
		return "", err
	}
	return event.PullRequest.Author, nil
}

// reopenedBy returns the user who last reopened the merge request, "" if that was before its head
// was pushed.
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
			return "", nil // the account was deleted
		}
		return r.sinceHead(ctx, event, s.User.Username, *s.CreatedAt)
	}
	return "", nil
}

// labelledBy returns the user who last set a label, "" if that was before a fork's head was pushed.
// Only users with write access push to the project itself.
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

// newest sorts a merge request's events, newest first. GitLab lists them in no particular order: an
// entry that it has changed since (a renamed label, for example) may move.
func newest[T any](all []T, id func(T) int) []T {
	return slices.SortedFunc(slices.Values(all), func(a, b T) int { return cmp.Compare(id(b), id(a)) })
}

// sinceHead returns who, a user who did something to the merge request at a time, "" if the event's
// commit became the head later.
func (r *repository) sinceHead(
	ctx context.Context, event *v1alpha1.GitEventSpec, who string, at time.Time,
) (string, error) {
	versions, err := r.versions(ctx, event)
	if err != nil {
		return "", err
	}
	for _, v := range versions { // newest first; a new target branch adds a version with the same head
		if v.HeadCommitSHA != event.SHA || v.CreatedAt == nil {
			break
		}
		if !at.Before(*v.CreatedAt) {
			return who, nil
		}
	}
	return "", nil
}

// pushedBy returns the user who last pushed the event's commit to the merge request's branch, from
// the activity of the source project. If the token may not read it, nothing is confirmed.
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
