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

// Put shows the check as a commit status. Its id is "<pipeline>/<status>", or "note/<note>" where a
// fork takes no status.
//
// What GitLab makes of a check: of the statuses of one name in a pipeline it shows the newest, and
// a pipeline is of one commit and one ref. So on each ref the newest run wins: its status takes the
// place, and with it the link, of the run before, which is canceled if it was still open (I-8);
// what a replaced run reports later is left out. A status belongs to a run if its description ends
// with the run's name, because GitLab keeps nothing else that could tell. One that has ended is
// never opened again (I-7): GitLab would take the late report for a new status and show that.
// GitLab also has no way back from running to pending, and old versions take no new description for
// a status in the same state. So the statuses of the commit are looked up each time, also when the
// caller knows of all posts of this run.
func (r *repository) Put(ctx context.Context, head git.Head, id string, check status.Check, _ bool) (string, error) {
	want := makeStatus(check)
	if err := provider.CheckCheck(want.name, check); err != nil {
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
	}
	return r.putNote(ctx, head, id, check)
}

// place is a project that may take a commit's statuses.
type place struct {
	// project is a path or an id.
	project any
	// ref is the branch or tag whose pipeline the statuses are in; empty leaves that to GitLab.
	ref string
	// foreign is true where a refusal is no news: the status is shown elsewhere then.
	foreign bool
}

// fork reports whether the commit is on a branch of another project, or of one that was deleted.
func fork(head git.Head) bool {
	return head.PullRequest != nil && head.PullRequest.HeadProjectID != head.Project.ID
}

// showForFork tries the fork, where the commit's pipelines and with them the merge request's are,
// and then the target. It returns "" if neither has a place for the status.
func (r *repository) showForFork(ctx context.Context, head git.Head, want wanted) (string, error) {
	source, err := r.source(ctx, head.PullRequest)
	if err != nil {
		return "", err
	}
	if source > 0 {
		id, err := r.show(ctx, place{project: source, ref: refName(head.Ref), foreign: true}, head.SHA, "", want)
		if !elsewhere(id, err) {
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

// showInTarget shows the status in the pipeline that the target has of the merge request itself,
// and "" if there is none: one that is made here would not be shown by the merge request, and one
// of a branch or tag that has the commit as well is about that one
// (https://docs.gitlab.com/ci/pipelines/merge_request_pipelines/).
func (r *repository) showInTarget(ctx context.Context, head git.Head, want wanted) (string, error) {
	ref := fmt.Sprintf("refs/merge-requests/%d/head", head.PullRequest.Number)
	at := place{project: int(r.ID), ref: ref, foreign: true}
	found, err := r.list(ctx, "looking for the merge request's pipeline", at, head.SHA, &gl.GetCommitStatusesOptions{})
	if err != nil || len(found) == 0 {
		return "", err
	}
	return r.show(ctx, at, head.SHA, "", want)
}

// elsewhere reports whether the next place is tried: this one has refused the status, or has no
// place for it. It may also be one that anybody may read, and that does not have the status that is
// to be closed.
func elsewhere(shown string, err error) bool {
	return err == nil && shown == "" || refused(err)
}

// source returns the id of the fork, 0 if it is gone. GitLab is asked for it: with an id that a
// payload chose, a status could be set in any project that the token reaches.
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

// sourceReads is how often a fork must be absent before that is believed (L4, B8b): one 404 may be
// a replica's.
const sourceReads = 3

// confirm returns nil if a refusal of the fork is to be believed: a 403, or a 404 that the project
// itself gives each time.
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

// refused reports whether GitLab said that the token may not, or that there is nothing.
func refused(err error) bool {
	code := provider.StatusCode(err)
	return fault.Is(err, fault.Operator) && (code == http.StatusForbidden || code == http.StatusNotFound)
}

// refName is a branch or tag as GitLab's statuses name it. One that is too long for them is cut,
// and a digest tells it from others: without a ref GitLab would put the status into another one's
// pipeline.
func refName(ref string) string {
	ref = strings.TrimPrefix(strings.TrimPrefix(ref, "refs/heads/"), "refs/tags/")
	if name := []rune(ref); len(name) > maxField {
		sum := digest(ref)
		return string(name[:maxField-len(sum)-1]) + "-" + sum
	}
	return ref
}

// settled words GitLab's refusal of a status where it has to take it. No refusal is the author's
// fault.
func (p place) settled(what string, err error) error {
	switch said := provider.Said(err); {
	case p.foreign:
		return provider.Failed(what, err)
	case provider.StatusCode(err) == http.StatusNotFound && (strings.Contains(said, "Commit Not Found") || strings.Contains(said, "References for commit")):
		return fault.Transientf(fault.ReasonCommitUnknown, "%s: GitLab does not know the commit (yet)", what)
	case provider.StatusCode(err) == http.StatusForbidden && fault.Is(err, fault.Operator):
		return fmt.Errorf(
			"%w (to set statuses the token needs the scope api and the role Developer, on a protected branch a role that may push to it, and CI/CD must be enabled)",
			provider.Failed(what, err),
		)
	}
	return provider.Failed(what, err)
}

// metadata is the id of the pipeline that the status is in; a note is in none.
func metadata(id string) (labels, annotations map[string]string) {
	labels, annotations = map[string]string{}, map[string]string{}
	if pipeline, _, found := strings.Cut(id, "/"); found && !strings.HasPrefix(id, notePrefix) {
		annotations[pipelinesascode.GitLabPipelineID] = pipeline
	}
	return labels, annotations
}
