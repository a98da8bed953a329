// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"fmt"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/plan/rerun"
)

const (
	// maxCancelled is how many names one command may have, each of at most 253 bytes. They are
	// copied to an annotation of each event that is cancelled.
	maxCancelled = 50
	// maxAnnotation is the maximum size of such an annotation in bytes: JSON, in which some
	// characters take six bytes. An event accepts 50 cancellations (v1alpha1.MaxCancellations), and
	// all annotations of an object may have 256 KiB.
	maxAnnotation = 4500
)

// cancelAsRequested returns the plan of a /cancel by a user who may give it. It cancels what was
// started before the comment was written, for its pull request or for the branch or tag at its
// commit; or only the pipelines that it names (S26).
func (p *planner) cancelAsRequested(ctx context.Context) (*Plan, error) {
	made := p.requestedCancellation()
	_, value, err := made.Cancels.CancelsAs(p.Event.Name)
	if err != nil {
		return nil, err
	}
	if len(made.Cancels.Names) > maxCancelled || len(value) > maxAnnotation {
		why := fmt.Sprintf("nothing was cancelled: a comment may name %d pipelines, of some %d bytes together",
			maxCancelled, maxAnnotation)
		return p.end(v1alpha1.DispositionIgnored, p.spec.SHA, reasonTooManyNames, why), nil
	}
	if p.Cancels == nil {
		return made, nil
	}
	something, running, err := p.Cancels(ctx, p.spec, made.Cancels)
	switch {
	case err != nil:
		return nil, fmt.Errorf("looking for what the command cancels: %w", err)
	case !something && p.Untrusted:
		return p.nothingToCancel(), nil
	case !something: // events that are recorded before this plan are cancelled too
		made.Reason = v1alpha1.NothingToCancel
	}
	p.cancelsRun = running
	if !p.Untrusted {
		left, err := rerun.LeftToPaC(ctx, p.PaCRuns, p.Repository.Name, p.spec, p.command.Names)
		made.Message = cmp.Or(left, made.Message)
		return made, err
	}
	return made, nil
}

// requestedCancellation returns the plan that a comment requests.
func (p *planner) requestedCancellation() *Plan {
	ref := ""
	if p.onCommit() {
		ref = p.spec.BaseRef
	}
	return p.cancel(reasonCancelRequested, v1alpha1.Cancellation{
		By: p.spec.Sender, Names: p.command.Names, Ref: ref, Why: p.spec.Sender + " requested it in a comment",
	})
}

func (p *planner) nothingToCancel() *Plan {
	what := "the command is about no unfinished run, or it is being cancelled already"
	return p.end(v1alpha1.DispositionIgnored, p.spec.SHA, v1alpha1.NothingToCancel, "nothing was cancelled: "+what)
}

// endOwnCancel ends a /cancel early if its user may only cancel runs of the own pull request. It
// does so if the command is malformed or has nothing to cancel. So the Git service is not called,
// however often the user comments.
func (p *planner) endOwnCancel(ctx context.Context) (*Plan, error) {
	untrusted, err := p.authz.OnlyAsAuthor(ctx, p.authzEvent())
	if err != nil {
		return nil, err
	}
	p.Untrusted = untrusted
	if readable := p.malformed == nil; untrusted && !readable {
		return p.end(v1alpha1.DispositionIgnored, p.Event.Spec.SHA, p.malformed.Reason, p.malformed.Message), nil
	}
	if !untrusted || p.Cancels == nil {
		return nil, nil
	}
	something, _, err := p.Cancels(ctx, p.spec, p.requestedCancellation().Cancels)
	if err == nil && !something {
		return p.nothingToCancel(), nil
	}
	return nil, err
}
