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
	"github.com/plumbline-ci/plumbline/pkg/provider/text"
)

const (
	stateClosed = "closed"
	stateMerged = "merged"
	// reasonForged is that of an event that GitLab's own answers contradict.
	reasonForged = "NotTrue"
)

// Complete asks GitLab for what the delivery says. GitLab signs nothing: whoever knows a webhook's
// token can send any body, and the global token is known to every team that uses it. So a body only
// says where to look.
func (r *repository) Complete(ctx context.Context, event *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
	project, err := r.owned(ctx)
	if err != nil {
		return nil, err
	}
	complete := r.pushed
	switch {
	case event.PullRequest == nil && event.Comment != nil:
		complete = func(ctx context.Context, event *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
			return r.pointed(ctx, event, project.DefaultBranch)
		}
	case event.PullRequest != nil && event.Comment != nil:
		complete = r.comment
	case event.PullRequest != nil:
		complete = r.merging
	}
	out, err := complete(ctx, event)
	if err != nil {
		return nil, err
	}
	r.in(out, project)
	return out, r.from(ctx, out, project)
}

// in makes the project of an event what GitLab says of it. The path is the body's as long as it
// differs in more than cases: the project was moved since, and is still called by the path that the
// Repository has.
func (r *repository) in(event *v1alpha1.GitEventSpec, project *gl.Project) {
	p := &event.Project
	p.ID, p.OwnerID = int64(project.ID), int64(project.Namespace.ID)
	p.DefaultBranch = text.Bytes(text.Clean(project.DefaultBranch), payload.MaxRef)
	if strings.EqualFold(project.PathWithNamespace, r.Path) {
		p.Owner, p.Name, p.URL = path.Dir(project.PathWithNamespace), path.Base(project.PathWithNamespace), webURL(project)
	}
}

// from sets where the event's branch lives. It is empty for a fork that was deleted, for one that
// GitLab does not show to the token, which could not read it either, and for what only ends runs.
func (r *repository) from(ctx context.Context, event *v1alpha1.GitEventSpec, project *gl.Project) error {
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

// owned returns the project that has the path now, with the group or user whose it is. It is an
// error if that is another project than the delivery's: a path that changed hands says nothing of
// what was pushed before.
func (r *repository) owned(ctx context.Context) (*gl.Project, error) {
	project, err := r.Describe(ctx)
	switch {
	case err != nil:
		return nil, err
	case project.Namespace == nil || project.Namespace.ID <= 0 || project.WebURL == "":
		return nil, api.NoAnswer("reading " + r.Path)
	}
	return project, nil
}

// comment takes everything from the merge request of this moment: its head may have moved, its
// branch may have been retargeted.
func (r *repository) comment(ctx context.Context, event *v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
	const what = "reading the merge request of the comment"
	mr, err := r.told(ctx, what, event)
	if err != nil {
		return nil, err
	}
	if mr.State != delivery.StateOpened {
		return nil, fault.Ignoredf("PullRequestClosed", "merge request !%d was closed before its comment was read", mr.IID)
	}
	body, written, err := r.noted(ctx, event)
	if err != nil {
		return nil, err
	}
	out := as(event, mr)
	out.SHA, out.Comment.Body, out.HappenedAt, out.Commit = mr.SHA, body, written, nil
	return out, nil
}

// noted returns what a comment says and when it was written, if the one who is said to have written
// it has.
func (r *repository) noted(ctx context.Context, event *v1alpha1.GitEventSpec) (string, *metav1.Time, error) {
	const what = "reading the comment"
	note, _, err := r.Client.Notes.GetMergeRequestNote(
		r.Path,
		int(event.PullRequest.Number),
		int(event.Comment.ID),
		gl.WithContext(ctx),
	)
	if provider.StatusCode(err) == http.StatusNotFound {
		if err := r.Nobody(ctx, what); err != nil {
			return "", nil, err
		}
		return "", nil, fault.Transientf(
			fault.ReasonNotConfirmed,
			"GitLab shows no comment %d on merge request !%d (yet)",
			event.Comment.ID,
			event.PullRequest.Number,
		)
	}
	if err != nil {
		return "", nil, provider.Failed(what, err)
	}
	return said(what, event, note)
}

// said returns what GitLab says of the event's comment, if the one who is said to have written it
// has.
func said(what string, event *v1alpha1.GitEventSpec, note *gl.Note) (string, *metav1.Time, error) {
	switch {
	case note == nil || int64(note.ID) != event.Comment.ID || note.Author.Username == "" || note.Body == "":
		return "", nil, api.NoAnswer(what)
	case note.System || !strings.EqualFold(note.Author.Username, event.Sender):
		return "", nil, forged("the comment is not of %s", event.Sender)
	}
	return text.Clean(note.Body), second(note.CreatedAt), nil
}

// second is a time as events have it; nil stays nil.
func second(at *time.Time) *metav1.Time {
	if at == nil {
		return nil
	}
	stamp := metav1.NewTime(at.UTC().Truncate(time.Second))
	return &stamp
}

func forged(format string, args ...any) error {
	return fault.Ignoredf(reasonForged, format+", other than its delivery says: GitLab has not sent that", args...)
}
