// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/authz"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/plan/rerun"
)

// findRerun finds what a re-run request is about: the pull request or push of the check, and the
// pipelines. Before the user is known to have write access, nothing else is read.
func (p *planner) findRerun(ctx context.Context) error {
	if p.spec.Rerun == nil {
		return nil
	}
	if p.Earlier == nil {
		may, err := p.Access.CanWrite(ctx, p.spec.Sender)
		if err != nil {
			return fmt.Errorf("asking for the access of %s: %w", p.spec.Sender, err)
		}
		if !may {
			return ignoredError(fault.Ignoredf(
				reasonNotApproved, "The user who requested the re-run has no write access to this repository.",
			))
		}
	}
	found, err := rerun.Find(ctx, rerun.Sources{Records: p.RecordsOf, Pulls: p.History}, p.spec, p.Config.ApplicationName)
	if err != nil {
		return err
	}
	p.rerun = found
	p.spec.PullRequest = nil
	if err := ignoredError(found.Complete(p.spec)); err != nil {
		return err
	}
	if p.RecordSubject == nil || p.Earlier != nil {
		return nil
	}
	if err := p.RecordSubject(ctx, p.spec.Subject()); err != nil {
		return err
	}
	return p.findRerunAgain(ctx)
}

// findRerunAgain repeats the search in the subject that was found, once no other event of it is
// being planned.
func (p *planner) findRerunAgain(ctx context.Context) error {
	if err := p.waitForOthers(ctx); err != nil {
		return err
	}
	list, err := p.recorded(ctx)
	if err != nil {
		return fmt.Errorf("reading what ran on commit %s: %w", p.spec.SHA, err)
	}
	p.rerun = p.rerun.Refresh(p.spec, list)
	return ignoredError(p.rerun.Complete(p.spec))
}

// checkRerunAllowed returns an IgnoredError unless the requested commit sha may still run; the spec
// has the pull request's current head. A fork's commit may run again if it ran before, because then
// a user has allowed it. authorize checks in addition that author and sender have write access.
func (p *planner) checkRerunAllowed(sha string) error {
	head := p.spec.SHA
	p.spec.SHA = sha
	pr := p.spec.PullRequest
	switch {
	case pr == nil || p.Earlier != nil:
		return nil
	case !authz.SameRepository(p.spec) && !p.rerun.Ran:
		return ignoredError(fault.Ignoredf(reasonNotApproved,
			"No run of this commit of a fork is on record, so no user has allowed it: comment /test on the pull request."))
	case p.rerun.Unrecorded && head != sha:
		return ignoredError(fault.Ignoredf(reasonNotTheHead,
			"Commit %s is not on record, and the head of pull request #%d is %s now.", sha, pr.Number, head))
	}
	return nil
}

// selectForRerun decides about a candidate by its name: it ran before, whatever its annotations
// say. It returns false if this event does not select by name.
func (d *draft) selectForRerun(c *candidate) bool {
	if d.rerun == nil {
		return false
	}
	if run := d.rerun.Running[c.definition.Name]; run != "" {
		c.err = fault.Ignoredf(reasonNotSelected, "its latest run on this commit, %s, is not finished", run)
		return true
	}
	if d.rerun.Pipelines == nil {
		return false
	}
	switch {
	case !slices.Contains(d.rerun.Pipelines, c.definition.Name):
		c.err = fault.Ignoredf(reasonNotSelected, "it is not part of the re-run request")
	case c.definition.Err != nil:
		c.err = c.definition.Err
	default:
		c.selection = match.Selection{
			Selected: true,
			Reason:   fmt.Sprintf("%s: %s requested a re-run", match.Selected, d.spec.Sender),
		}
	}
	return true
}
