// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"context"
	"slices"
	"time"

	gl "github.com/xanzy/go-gitlab"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/api"
	"github.com/plumbline-ci/plumbline/pkg/provider/payload"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// completeMergeRequest confirms the event of a merge request. Its commit may be an older head. For
// a fork only the newest head counts, because only its last pusher is known.
func (r *repository) completeMergeRequest(
	ctx context.Context, event *v1alpha1.GitEventSpec,
) (*v1alpha1.GitEventSpec, error) {
	const what = "reading the merge request of the event"
	mr, err := r.mergeRequestOf(ctx, what, event)
	if err != nil {
		return nil, err
	}
	if event.Closes() {
		return completeClosing(event, mr)
	}
	if mr.State == stateClosed || mr.State == stateMerged {
		return nil, fault.Ignoredf(reasonPullRequestClosed, "merge request !%d was closed before its event was read", mr.IID)
	}
	if mr.SHA != event.SHA {
		if err := r.wasHead(ctx, event); err != nil {
			return nil, err
		}
		if int64(mr.SourceProjectID) != r.ID {
			return nil, fault.Ignoredf(reasonSuperseded, "merge request !%d has another head by now, %s, whose own event counts",
				mr.IID, mr.SHA)
		}
	}
	if at := eventTime(mr.UpdatedAt); at != nil && event.HappenedAt != nil && event.HappenedAt.After(at.Time) {
		return nil, fault.Transientf(fault.ReasonNotConfirmed, "merge request !%d was not changed so late (yet)", mr.IID)
	}
	out := withMergeRequest(event, mr)
	out.Commit = nil // it is read from GitLab
	return out, nil
}

// completeClosing confirms that a merge request is no longer open, and sets who closed or merged it
// and when, according to GitLab. If it is open, it was reopened, or a replica is stale.
func completeClosing(event *v1alpha1.GitEventSpec, mr *gl.MergeRequest) (*v1alpha1.GitEventSpec, error) {
	var who *gl.BasicUser
	var at *time.Time
	switch mr.State {
	case stateClosed:
		who, at = mr.ClosedBy, mr.ClosedAt
	case stateMerged:
		who, at = mr.MergedBy, mr.MergedAt
	default:
		return nil, fault.Transientf(fault.ReasonNotConfirmed, "merge request !%d is %s, and not closed (yet)",
			mr.IID, mr.State)
	}
	out := withMergeRequest(event, mr)
	out.Actor, out.SHA, out.Commit = "", mr.SHA, nil
	if who != nil {
		out.Actor = text.Bytes(text.Clean(who.Username), payload.MaxLogin)
	}
	out.HappenedAt = eventTime(at)
	return out, nil
}

// mergeRequestOf returns the merge request of the event unless it contradicts the delivery. Its
// author, source project and branch never change, except that the source may be deleted.
func (r *repository) mergeRequestOf(
	ctx context.Context, what string, event *v1alpha1.GitEventSpec,
) (*gl.MergeRequest, error) {
	number := int(event.PullRequest.Number)
	mr, err := r.mergeRequest(ctx, what, number)
	if f := fault.Of(err); f != nil && f.Reason == reasonNoMergeRequest {
		return nil, fault.Transientf(fault.ReasonNotConfirmed, "%w", err)
	}
	if err != nil {
		return nil, err
	}
	if err := r.checkAnswer(what, mr); err != nil {
		return nil, err
	}
	reported := event.PullRequest
	switch {
	case reported.AuthorID != 0 && reported.AuthorID != int64(mr.Author.ID):
		return nil, forged("merge request !%d is of another author", number)
	case reported.HeadProjectID != 0 && mr.SourceProjectID != 0 && reported.HeadProjectID != int64(mr.SourceProjectID):
		return nil, forged("merge request !%d comes from another project", number)
	case event.HeadRef != mr.SourceBranch:
		return nil, forged("merge request !%d comes from another branch", number)
	}
	return mr, nil
}

// withMergeRequest returns the event with the fields of its merge request.
func withMergeRequest(event *v1alpha1.GitEventSpec, mr *gl.MergeRequest) *v1alpha1.GitEventSpec {
	out := event.DeepCopy()
	out.BaseRef, out.HeadRef = mr.TargetBranch, mr.SourceBranch
	out.PullRequest.Author, out.PullRequest.AuthorID = mr.Author.Username, int64(mr.Author.ID)
	out.PullRequest.App = false // GitLab's bots are members with a role, which counts
	out.PullRequest.Draft = mr.Draft
	out.PullRequest.Title = text.FirstLine(mr.Title, payload.MaxTitle)
	out.PullRequest.Labels = nil
	for _, label := range mr.Labels[:min(len(mr.Labels), payload.MaxLabels)] {
		out.PullRequest.Labels = append(out.PullRequest.Labels, text.Bytes(text.Clean(label), payload.MaxName))
	}
	out.PullRequest.HeadProjectID = int64(mr.SourceProjectID) // 0 if the fork was deleted
	return out
}

// checkAnswer refuses an answer that is about another project, or that lacks a field that decisions
// depend on.
func (r *repository) checkAnswer(what string, mr *gl.MergeRequest) error {
	if int64(mr.TargetProjectID) != r.ID || mr.State == "" || mr.Author == nil || mr.Author.ID <= 0 ||
		!provider.IsSHA(mr.SHA) {
		return api.NoAnswer(what)
	}
	err := payload.Check(payload.Text("", mr.SourceBranch, payload.MaxRef),
		payload.Text("", mr.TargetBranch, payload.MaxRef), payload.Text("", mr.Author.Username, payload.MaxLogin))
	if err != nil {
		return api.NoAnswer(what)
	}
	return nil
}

// wasHead returns nil if the event's commit was a head of the merge request.
func (r *repository) wasHead(ctx context.Context, event *v1alpha1.GitEventSpec) error {
	versions, err := r.versions(ctx, event)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(versions, func(v *gl.MergeRequestDiffVersion) bool { return v.HeadCommitSHA == event.SHA }) {
		return nil
	}
	return fault.Transientf(fault.ReasonNotConfirmed, "commit %s is no head that merge request !%d ever had (yet)",
		event.SHA, event.PullRequest.Number)
}
