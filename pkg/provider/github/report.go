// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/limits"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// Put shows the check as a check run and returns its id. It may be repeated whatever happened to
// the first attempt: it finds a stored check run by its external id. If there are several, it keeps
// the newest, which GitHub shows. It returns the id with an error if the check was accepted and
// only closing a duplicate failed.
func (r *repository) Put(ctx context.Context, head git.Head, id string, check status.Check, sole bool) (string, error) {
	if err := provider.ValidateCheck(checkName(check), check); err != nil {
		return "", err
	}
	if err := provider.CheckSHA(head.SHA); err != nil {
		return "", err
	}
	known := parsed(id)
	ends := check.State == status.Completed
	switch {
	case check.Yields:
		return r.yield(ctx, head.SHA, check)
	case check.OnlyOpen:
		return r.closeOpen(ctx, head.SHA, known, check)
	case sole && known != 0 && ends: // any other report may be late (E6)
		return r.update(ctx, head.SHA, known, check)
	case sole && id == "":
		return r.create(ctx, head.SHA, check)
	case known != 0 && !ends:
		return r.progress(ctx, head.SHA, known, check)
	}
	return r.settle(ctx, head.SHA, known, check)
}

// parsed returns the number of a check run, 0 for an id that is not ours, which counts as none.
func parsed(id string) int64 {
	known, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return 0
	}
	return max(0, known)
}

// progress updates a check run without a conclusion. If it has one, this report is late and changes
// nothing (E6).
func (r *repository) progress(ctx context.Context, sha string, id int64, check status.Check) (string, error) {
	run, err := r.get(ctx, id)
	if err != nil {
		return "", err
	}
	if run == nil {
		return r.settle(ctx, sha, 0, check)
	}
	if completed(run) {
		return format(id), nil
	}
	return r.update(ctx, sha, id, check)
}

// settle looks for our check runs first, updates the newest and closes the others.
func (r *repository) settle(ctx context.Context, sha string, known int64, check status.Check) (string, error) {
	ours, err := r.find(ctx, sha, known, check)
	if err != nil {
		return "", err
	}
	if len(ours) == 0 {
		return r.first(ctx, sha, check)
	}
	newest := ours[0]
	id := format(newest.GetID())
	if !completed(newest) || check.State == status.Completed {
		if id, err = r.update(ctx, sha, newest.GetID(), check); err != nil {
			return "", err
		}
	}
	return id, r.closeOlder(ctx, ours[1:], check)
}

// first creates a check that does not exist yet. Another event may create a shared check at the
// same time; the later of the two look-ups finds both.
func (r *repository) first(ctx context.Context, sha string, check status.Check) (string, error) {
	id, err := r.create(ctx, sha, check)
	if err != nil || !check.Shared {
		return id, err
	}
	ours, err := r.find(ctx, sha, 0, check)
	if err != nil || len(ours) == 0 {
		return id, err
	}
	return format(ours[0].GetID()), r.closeOlder(ctx, ours[1:], check)
}

// closeOlder closes check runs that a newer one of the same check replaces.
func (r *repository) closeOlder(ctx context.Context, older []*gh.CheckRun, check status.Check) error {
	for _, run := range older {
		if completed(run) && (check.State != status.Completed || run.GetConclusion() == string(status.Cancelled)) {
			continue
		}
		if _, err := r.write(
			ctx, "closing a duplicate of the check", http.MethodPatch, r.runPath(run.GetID()), superseded(),
		); err != nil {
			return err
		}
	}
	return nil
}

// yield creates the check unless the commit has a check run of its name, whichever event it is of.
// GitHub shows the newest check run of a name, so this one would hide a result.
func (r *repository) yield(ctx context.Context, sha string, check status.Check) (string, error) {
	known, err := r.named(ctx, sha, check)
	if err != nil {
		return "", err
	}
	for _, run := range known {
		if check.HasExternalID(run.GetExternalID()) {
			return format(run.GetID()), nil
		}
	}
	if len(known) > 0 {
		return "", nil
	}
	return r.create(ctx, sha, check)
}

// closeOpen completes every pending check run of ours, and creates none.
func (r *repository) closeOpen(ctx context.Context, sha string, known int64, check status.Check) (string, error) {
	ours, err := r.find(ctx, sha, known, check)
	if err != nil || len(ours) == 0 {
		return "", err
	}
	for _, run := range ours {
		if completed(run) || !check.HasExternalID(run.GetExternalID()) || r.isOtherApps(run) {
			continue // the known id is not verified
		}
		if _, err := r.write(
			ctx, "closing the check", http.MethodPatch, r.runPath(run.GetID()), makeCheckRun(check),
		); err != nil {
			return "", err
		}
	}
	return format(ours[0].GetID()), nil
}

func (r *repository) create(ctx context.Context, sha string, check status.Check) (string, error) {
	body := makeCheckRun(check)
	body.HeadSHA = sha
	return r.write(ctx, "creating the check", http.MethodPost, fmt.Sprintf("repos/%s/%s/check-runs", r.owner, r.name),
		body)
}

// update creates the check again if it no longer exists.
func (r *repository) update(ctx context.Context, sha string, id int64, check status.Check) (string, error) {
	newID, err := r.write(ctx, "updating the check", http.MethodPatch, r.runPath(id), makeCheckRun(check))
	if provider.StatusCode(err) != http.StatusNotFound {
		return newID, err
	}
	if err := r.readable(ctx); err != nil {
		return "", wrapf("updating the check", err)
	}
	return r.create(ctx, sha, check)
}

func (r *repository) runPath(id int64) string {
	return fmt.Sprintf("repos/%s/%s/check-runs/%d", r.owner, r.name, id)
}

func (r *repository) write(ctx context.Context, what, method, path string, body checkRun) (string, error) {
	req, err := r.client.NewRequest(method, path, body)
	if err != nil {
		return "", limits.Failed(what, err)
	}
	var run gh.CheckRun
	if _, err := r.client.Do(ctx, req, &run); err != nil {
		return "", refusedCheck(what, err)
	}
	if run.GetID() == 0 {
		// It was accepted, but its id is unknown: the next attempt looks it up.
		f := fault.Transientf(provider.ReasonBadAnswer, "%s: the answer holds no id", what)
		f.Unknown = true
		return "", f
	}
	return format(run.GetID()), nil
}

// refusedCheck returns the fault of a refused check. It is never Invalid, because the author has
// not caused it (G10, D3).
func refusedCheck(what string, err error) error {
	err = limits.Failed(what, err)
	if provider.StatusCode(err) == http.StatusUnprocessableEntity &&
		strings.Contains(provider.Message(err), "No commit found") {
		return fault.Transientf(fault.ReasonCommitUnknown, "%s: GitHub does not know the commit (yet)", what)
	}
	if f := fault.Of(err); f.Class == fault.Invalid {
		return fault.Operatorf(f.Reason, "%s", f.Message)
	}
	return err
}

func completed(run *gh.CheckRun) bool { return run.GetStatus() == string(status.Completed) }

func format(id int64) string { return strconv.FormatInt(id, 10) }

// metadata returns the check run's id under PaC's names.
func metadata(id string) (labels, annotations map[string]string) {
	return map[string]string{pipelinesascode.CheckRunID: id}, map[string]string{pipelinesascode.CheckRunID: id}
}
