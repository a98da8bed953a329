// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	gl "github.com/xanzy/go-gitlab"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/gitlab/api"
)

// show sets a run's status at a commit of the project. It sets nothing if GitLab shows this status
// already, or that of a newer run. id is the id of the run's earlier status, "" if none is known.
func (r *repository) show(ctx context.Context, at place, sha, id string, want wanted) (string, error) {
	known, err := r.statuses(ctx, at, sha, want.name)
	if err != nil {
		return "", err
	}
	mine := want.among(known)
	if mine == nil {
		if id != "" {
			if err := r.closeOnOtherRef(ctx, at, sha, want); err != nil {
				return "", err
			}
		}
		return r.first(ctx, at, sha, want, known)
	}
	replaced := slices.ContainsFunc(known,
		func(s *gl.CommitStatus) bool { return s.PipelineId == mine.PipelineId && s.ID > mine.ID })
	if replaced || want.late(mine) || want.shown(mine) {
		return idOf(mine), nil
	}
	return r.set(ctx, at, sha, want, mine.PipelineId)
}

// first shows the first status of a run. known are those of other runs with its name.
func (r *repository) first(
	ctx context.Context, at place, sha string, want wanted, known []*gl.CommitStatus,
) (string, error) {
	if want.adopted {
		return r.adopt(ctx, at, sha, want)
	}
	if want.onlyOpen || want.yields && len(known) > 0 {
		return "", nil
	}
	return r.replace(ctx, at, sha, want, known)
}

// replace shows the first status of a run in the same pipeline as that of the run before on the
// same ref: only there GitLab treats the older one as replaced. It closes a pending one first,
// because GitLab would change that one instead of adding another, or refuse.
func (r *repository) replace(
	ctx context.Context, at place, sha string, want wanted, known []*gl.CommitStatus,
) (string, error) {
	if len(known) == 0 {
		return r.set(ctx, at, sha, want, 0)
	}
	newest := known[0]
	if err := r.end(ctx, at, sha, newest); err != nil {
		return "", err
	}
	return r.set(ctx, at, sha, want, newest.PipelineId)
}

// end closes a pending status.
func (r *repository) end(ctx context.Context, at place, sha string, s *gl.CommitStatus) error {
	if !open(s) {
		return nil
	}
	_, err := r.post(ctx, at, sha,
		&gl.SetCommitStatusOptions{State: gl.Canceled, Name: &s.Name, PipelineID: pipeline(s.PipelineId)})
	if err != nil && fault.Of(err).Reason != fault.ReasonTransition { // it is finished in the meantime
		return at.refused("closing the status of the run before", err)
	}
	return nil
}

// closeOnOtherRef closes the run's status on another ref, which would stay pending for ever.
// Earlier versions put all statuses of a commit into one pipeline.
func (r *repository) closeOnOtherRef(ctx context.Context, at place, sha string, want wanted) error {
	at.ref = ""
	known, err := r.statuses(ctx, at, sha, want.name)
	if err != nil {
		return err
	}
	if mine := want.among(known); mine != nil {
		return r.end(ctx, at, sha, mine)
	}
	return nil
}

// statuses lists the statuses with this name on the commit and the place's ref, newest first,
// including replaced ones. Statuses of other refs are other runs' verdicts: a commit may be on
// several branches and tags.
func (r *repository) statuses(ctx context.Context, at place, sha, name string) ([]*gl.CommitStatus, error) {
	const what = "looking the status up"
	found, err := r.list(ctx, what, at, sha, &gl.GetCommitStatusesOptions{Name: &name, All: gl.Ptr(true)})
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(s *gl.CommitStatus) bool { return s.Name != name })
	slices.SortFunc(found, func(a, b *gl.CommitStatus) int { return b.ID - a.ID })
	return found, nil
}

// list returns the statuses of a commit on the place's ref, or on any ref if the place has none.
func (r *repository) list(
	ctx context.Context, what string, at place, sha string, opts *gl.GetCommitStatusesOptions,
) ([]*gl.CommitStatus, error) {
	if at.ref != "" {
		opts.Ref = &at.ref
	}
	found, err := api.List(ctx, what, func(page ...gl.RequestOptionFunc) ([]*gl.CommitStatus, *gl.Response, error) {
		return r.Client.Commits.GetCommitStatuses(at.project, sha, opts, page...)
	})
	if err != nil && at.foreign {
		return nil, provider.Failed(what, err)
	}
	if err != nil {
		return nil, r.Unavailable(ctx, what, sha, err)
	}
	if slices.ContainsFunc(found, undecided) {
		return nil, api.NoAnswer(what)
	}
	return slices.DeleteFunc(found,
		func(s *gl.CommitStatus) bool { return at.ref != "" && s.Ref != "" && s.Ref != at.ref }), nil
}

// undecided reports whether a list does not say which status an entry is. If it were taken for
// another run's, a second status would be posted. Without a ref the entry is of the requested one.
func undecided(s *gl.CommitStatus) bool { return s == nil || s.ID <= 0 || s.Name == "" }

// set posts the status. If GitLab's state machine refuses the transition, it reads what GitLab
// shows. It never assumes that GitLab already shows the refused state (L6, E12).
func (r *repository) set(ctx context.Context, at place, sha string, want wanted, in int) (string, error) {
	const what = "setting the status"
	opts := &gl.SetCommitStatusOptions{
		State: want.state, Name: &want.name, Description: &want.description, PipelineID: pipeline(in),
	}
	if want.url != "" { // GitLab refuses an empty URL
		opts.TargetURL = &want.url
	}
	if in == 0 && at.ref != "" {
		opts.Ref = &at.ref
	}
	shown, err := r.post(ctx, at, sha, opts)
	if provider.StatusCode(err) == http.StatusNotFound && in != 0 {
		// The pipeline is gone or archived: another one is used.
		return r.set(ctx, at, sha, want, 0)
	}
	refusal := fault.Of(err)
	switch {
	case err == nil:
		return idOf(shown), nil
	case refusal.Reason == fault.ReasonTransition:
		return r.compare(ctx, at, sha, want, refusal)
	case want.yields && provider.StatusCode(err) == http.StatusBadRequest:
		return "", nil // no state of an old version says that nothing had to run
	case want.state == gl.Skipped && provider.StatusCode(err) == http.StatusBadRequest:
		// Old versions have no state skipped. A run that did not happen must not count as passed.
		want.state = gl.Canceled
		return r.set(ctx, at, sha, want, in)
	}
	return "", at.refused(what, err)
}

func (r *repository) compare(
	ctx context.Context, at place, sha string, want wanted, refusal *fault.Error,
) (string, error) {
	known, err := r.statuses(ctx, at, sha, want.name)
	if err != nil {
		return "", err
	}
	mine := want.among(known)
	if mine != nil && mine.Status == string(want.state) {
		return idOf(mine), nil
	}
	shown := "none of this run"
	if mine != nil {
		shown = mine.Status
	}
	return "", fault.Transientf(fault.ReasonTransition, "GitLab refuses the status %s and shows %s: %s",
		want.state, shown, refusal.Message)
}

func (r *repository) post(
	ctx context.Context, at place, sha string, opts *gl.SetCommitStatusOptions,
) (*gl.CommitStatus, error) {
	shown, _, err := r.Client.Commits.SetCommitStatus(at.project, sha, opts, gl.WithContext(ctx))
	if err != nil {
		return nil, provider.Failed("setting the status", err)
	}
	if shown.ID == 0 {
		// It was accepted, but its id is unknown: the next attempt looks it up.
		f := fault.Transientf(provider.ReasonBadAnswer, "setting the status: the answer holds no id")
		f.Unknown = true
		return nil, f
	}
	return shown, nil
}

func idOf(s *gl.CommitStatus) string { return fmt.Sprintf("%d/%d", s.PipelineId, s.ID) }

func pipeline(id int) *int {
	if id == 0 {
		return nil
	}
	return &id
}
