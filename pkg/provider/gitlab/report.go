// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	gl "github.com/xanzy/go-gitlab"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/api"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// Put shows the check as a commit status. Its id is "<pipeline>/<status>", or "note/<note>" if a
// fork accepts no status.
//
// GitLab shows the newest of several statuses with the same name in a pipeline; a pipeline belongs
// to one commit and one ref. So on each ref the newest run wins. Its status, with its link,
// replaces that of the run before, which is canceled if it was still pending (I-8). Later reports
// of a replaced run are dropped.
//
// A status belongs to a run if its description ends with the run's name, because GitLab stores
// nothing else that identifies it. A finished status is never reopened (I-7): GitLab would treat
// the late report as a new status and show that. GitLab also cannot go back from running to
// pending, and old versions accept no new description for the same state. So the statuses of the
// commit are looked up each time, even if the caller knows all posts of this run.
func (r *repository) Put(ctx context.Context, head git.Head, id string, check status.Check, _ bool) (string, error) {
	want := makeStatus(check)
	if err := provider.ValidateCheck(want.name, check); err != nil {
		return "", err
	}
	if err := provider.CheckSHA(head.SHA); err != nil {
		return "", err
	}
	if !fork(head) {
		return r.show(ctx, place{project: int(r.ID), ref: refName(head.Ref)}, head.SHA, id, want)
	}
	if !strings.HasPrefix(id, notePrefix) {
		shown, err := r.showForFork(ctx, head, want)
		if !elsewhere(shown, err) {
			return shown, err
		}
		if check.Yields { // no check is required here, and a note would only be noise
			return "", nil
		}
	}
	if r.quiet { // no note is written, and one that the run has is finished
		check.OnlyOpen = true
	}
	return r.putNote(ctx, head, id, check)
}

// place is a project that may accept a commit's statuses.
type place struct {
	// project is a path or an id.
	project any
	// ref is the branch or tag whose pipeline has the statuses; if it is empty, GitLab decides.
	ref string
	// foreign is true for a project that may refuse: then the status is shown elsewhere.
	foreign bool
}

// fork reports whether the commit is on a branch of another project, or of a deleted one.
func fork(head git.Head) bool {
	return head.PullRequest != nil && head.PullRequest.HeadProjectID != head.Project.ID
}

// showForFork tries the fork, which has the pipelines of the commit and so of the merge request,
// and then the target. It returns "" if neither accepts the status.
func (r *repository) showForFork(ctx context.Context, head git.Head, want wanted) (string, error) {
	source, err := r.source(ctx, head.PullRequest)
	if err != nil {
		return "", err
	}
	if source > 0 {
		id, err := r.show(ctx, place{project: source, ref: refName(head.Ref), foreign: true}, head.SHA, "", want)
		if !elsewhere(id, err) || want.yields && err == nil {
			return id, err
		}
		if err != nil {
			err = r.confirm(ctx, source, err)
		}
		if err != nil {
			return "", err
		}
	}
	return r.showInTarget(ctx, head, want)
}

// showInTarget shows the status in the target's own pipeline of the merge request, and returns ""
// if there is none. The merge request would not show a pipeline that is created here, and the
// pipeline of a branch or tag with the same commit belongs to that branch or tag
// (https://docs.gitlab.com/ci/pipelines/merge_request_pipelines/).
func (r *repository) showInTarget(ctx context.Context, head git.Head, want wanted) (string, error) {
	ref := fmt.Sprintf("refs/merge-requests/%d/head", head.PullRequest.Number)
	at := place{project: int(r.ID), ref: ref, foreign: true}
	if want.adopted {
		return r.adopt(ctx, at, head.SHA, want)
	}
	found, err := r.list(ctx, "looking for the merge request's pipeline", at, head.SHA, &gl.GetCommitStatusesOptions{})
	if err != nil || len(found) == 0 {
		return "", err
	}
	return r.show(ctx, at, head.SHA, "", want)
}

// elsewhere reports whether the next place is tried: this one has refused the status, or has none
// to close.
func elsewhere(shown string, err error) bool {
	return err == nil && shown == "" || refused(err)
}

// source returns the id of the fork, 0 if it is gone. The id is read from GitLab: with an id from a
// payload, a status could be set in any project that the token covers.
func (r *repository) source(ctx context.Context, pr *v1alpha1.PullRequest) (int, error) {
	if pr.HeadProjectID == 0 {
		return 0, nil
	}
	mr, err := r.mergeRequest(ctx, "reading the merge request", int(pr.Number))
	if err != nil {
		return 0, err
	}
	return mr.SourceProjectID, nil
}

// sourceReads is how often a fork must be missing before that is accepted (L4, B8b): one 404 may be
// from a stale replica.
const sourceReads = 3

// confirm returns nil if a refusal by the fork is reliable: a 403, or a 404 that the project itself
// returns each time.
func (r *repository) confirm(ctx context.Context, source int, refusal error) error {
	if provider.StatusCode(refusal) != http.StatusNotFound {
		return nil
	}
	project, err := r.sourceProject(ctx, source)
	if project != nil {
		return fault.Transientf(fault.ReasonCommitUnknown, "the source project has no such commit (yet)")
	}
	return err
}

// sourceProject returns a fork, nil if GitLab refuses it to the token each time.
func (r *repository) sourceProject(ctx context.Context, source int) (*gl.Project, error) {
	const what = "reading the source project"
	for range sourceReads {
		project, _, err := r.Client.Projects.GetProject(source, nil, gl.WithContext(ctx))
		switch {
		case err == nil && (project.ID != source || project.WebURL == ""):
			return nil, api.NoAnswer(what)
		case err == nil:
			return project, nil
		case !refused(err):
			return nil, provider.Failed(what, err)
		}
	}
	return nil, nil
}

// refused reports whether GitLab said that the token has no permission, or that there is nothing.
func refused(err error) bool {
	code := provider.StatusCode(err)
	return fault.Is(err, fault.Operator) && (code == http.StatusForbidden || code == http.StatusNotFound)
}

// refName returns a branch or tag as GitLab's statuses name it. A name that is too long is cut and
// gets a digest. Without a ref GitLab would put the status into another ref's pipeline.
func refName(ref string) string {
	ref = strings.TrimPrefix(strings.TrimPrefix(ref, "refs/heads/"), "refs/tags/")
	if name := []rune(ref); len(name) > maxField {
		sum := digest(ref)
		return string(name[:maxField-len(sum)-1]) + "-" + sum
	}
	return ref
}

// refused returns the fault of a status that GitLab refuses although it has to accept it. It is
// never the author's.
func (p place) refused(what string, err error) error {
	switch said := provider.Message(err); {
	case p.foreign:
		return provider.Failed(what, err)
	case provider.StatusCode(err) == http.StatusNotFound &&
		(strings.Contains(said, "Commit Not Found") || strings.Contains(said, "References for commit")):
		return fault.Transientf(fault.ReasonCommitUnknown, "%s: GitLab does not know the commit (yet)", what)
	case provider.StatusCode(err) == http.StatusForbidden && fault.Is(err, fault.Operator):
		return fmt.Errorf(
			"%w (to set statuses the token needs the scope api and the role Developer, on a protected branch a role that may push to it, and CI/CD must be enabled)",
			provider.Failed(what, err),
		)
	}
	return provider.Failed(what, err)
}

// metadata returns the id of the pipeline that has the status; a note has none.
func metadata(id string) (labels, annotations map[string]string) {
	labels, annotations = map[string]string{}, map[string]string{}
	if pipeline, _, found := strings.Cut(id, "/"); found && !strings.HasPrefix(id, notePrefix) {
		annotations[pipelinesascode.GitLabPipelineID] = pipeline
	}
	return labels, annotations
}
