// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"context"
	"net/http"
	"path"
	"strings"
	"time"

	gl "github.com/xanzy/go-gitlab"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/api"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/delivery"
	"github.com/plumbline-ci/plumbline/pkg/provider/payload"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

const (
	stateClosed = "closed"
	stateMerged = "merged"
	// reasonForged is the reason of an event that GitLab itself contradicts.
	reasonForged = "NotTrue"
)

// Complete reads from GitLab everything that the delivery says. GitLab signs nothing: a user who
// knows a webhook's token can send any body, and every team that uses the global token knows it. So
// a body only says where to look.
func (r *repository) Complete(ctx context.Context, event *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
	project, err := r.describeOwned(ctx)
	if err != nil {
		return nil, err
	}
	complete := r.completePush
	switch {
	case event.Incoming != nil:
		complete = func(ctx context.Context, event *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
			return provider.AtTip(ctx, r, event)
		}
	case event.PullRequest == nil && event.Comment != nil:
		complete = func(ctx context.Context, event *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
			return r.completeOnCommit(ctx, event, project.DefaultBranch)
		}
	case event.PullRequest != nil && event.Comment != nil:
		complete = r.completeComment
	case event.PullRequest != nil:
		complete = r.completeMergeRequest
	}
	out, err := complete(ctx, event)
	if err != nil {
		return nil, err
	}
	r.setProject(out, project)
	return out, r.setHead(ctx, out, project)
}

// setProject sets the event's project to what GitLab says. If the path differs in more than case,
// the body's is kept: the project was moved since, and the Repository still has the old path.
func (r *repository) setProject(event *v1alpha1.GitEventSpec, project *gl.Project) {
	p := &event.Project
	p.ID, p.OwnerID = int64(project.ID), int64(project.Namespace.ID)
	p.DefaultBranch = text.Bytes(text.Clean(project.DefaultBranch), payload.MaxRef)
	if strings.EqualFold(project.PathWithNamespace, r.Path) {
		p.Owner, p.Name, p.URL = path.Dir(project.PathWithNamespace), path.Base(project.PathWithNamespace), webURL(project)
	}
}

// setHead sets the repository of the event's branch. It stays empty for a deleted fork, for one
// that GitLab does not show to the token, and for an event that only cancels runs.
func (r *repository) setHead(ctx context.Context, event *v1alpha1.GitEventSpec, project *gl.Project) error {
	event.HeadURL = webURL(project)
	pr := event.PullRequest
	if pr == nil || pr.HeadProjectID == r.ID {
		return nil
	}
	event.HeadURL = ""
	if pr.HeadProjectID == 0 || event.Closes() {
		return nil
	}
	fork, err := r.sourceProject(ctx, int(pr.HeadProjectID))
	if fork != nil {
		event.HeadURL = webURL(fork)
	}
	return err
}

func webURL(project *gl.Project) string {
	return text.Bytes(text.Clean(project.WebURL), payload.MaxURL)
}

// describeOwned returns the project that has the path now, with its group or user. It is an error
// if that is another project than the delivery's.
func (r *repository) describeOwned(ctx context.Context) (*gl.Project, error) {
	project, err := r.Describe(ctx)
	switch {
	case err != nil:
		return nil, err
	case project.Namespace == nil || project.Namespace.ID <= 0 || project.WebURL == "":
		return nil, api.NoAnswer("reading " + r.Path)
	}
	return project, nil
}

// completeComment completes a comment with the current merge request: its head may have moved, its
// target branch may have changed.
func (r *repository) completeComment(
	ctx context.Context, event *v1alpha1.GitEventSpec,
) (*v1alpha1.GitEventSpec, error) {
	const what = "reading the merge request of the comment"
	mr, err := r.mergeRequestOf(ctx, what, event)
	if err != nil {
		return nil, err
	}
	if mr.State != delivery.StateOpened {
		return nil, fault.Ignoredf(reasonPullRequestClosed, "merge request !%d was closed before its comment was read",
			mr.IID)
	}
	body, written, err := r.readNote(ctx, event)
	if err != nil {
		return nil, err
	}
	out := withMergeRequest(event, mr)
	out.SHA, out.Comment.Body, out.HappenedAt, out.Commit = mr.SHA, body, written, nil
	return out, nil
}

// readNote returns the text and time of a comment, if it is by the delivery's sender.
func (r *repository) readNote(ctx context.Context, event *v1alpha1.GitEventSpec) (string, *metav1.Time, error) {
	const what = "reading the comment"
	note, _, err := r.Client.Notes.GetMergeRequestNote(r.Path, int(event.PullRequest.Number), int(event.Comment.ID),
		gl.WithContext(ctx))
	if provider.StatusCode(err) == http.StatusNotFound {
		if err := r.Absent(ctx, what); err != nil {
			return "", nil, err
		}
		return "", nil, fault.Transientf(fault.ReasonNotConfirmed, "GitLab shows no comment %d on merge request !%d (yet)",
			event.Comment.ID, event.PullRequest.Number)
	}
	if err != nil {
		return "", nil, provider.Failed(what, err)
	}
	return checkNote(what, event, note)
}

// checkNote returns the text and time of GitLab's note, if it is by the delivery's sender.
func checkNote(what string, event *v1alpha1.GitEventSpec, note *gl.Note) (string, *metav1.Time, error) {
	switch {
	case note == nil || int64(note.ID) != event.Comment.ID || note.Author.Username == "" || note.Body == "":
		return "", nil, api.NoAnswer(what)
	case note.System || !strings.EqualFold(note.Author.Username, event.Sender):
		return "", nil, forged("the comment is not of %s", event.Sender)
	}
	return text.Clean(note.Body), eventTime(note.CreatedAt), nil
}

// eventTime returns a time as events store it; nil stays nil.
func eventTime(at *time.Time) *metav1.Time {
	if at == nil {
		return nil
	}
	stamp := metav1.NewTime(at.UTC().Truncate(time.Second))
	return &stamp
}

func forged(format string, args ...any) error {
	return fault.Ignoredf(reasonForged, format+", other than its delivery says: GitLab has not sent that", args...)
}
