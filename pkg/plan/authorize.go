// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// authorize decides whether the event may start runs. It returns the plan of one that may not, nil
// for others.
func (p *planner) authorize(ctx context.Context) (*Plan, error) {
	decision, err := p.authz.Decide(ctx, p.authzEvent())
	p.Basis = decision.Basis
	switch {
	case err != nil || decision.Allowed:
		return nil, err
	case p.spec.EventType == match.LabelEvent || p.spec.Comment != nil || p.rerun != nil:
		// The check of the pull request's own event already asks for approval, and each label would
		// add another. A comment or re-run must leave nothing on the commit unless it may start
		// runs.
		return p.end(v1alpha1.DispositionIgnored, p.spec.SHA, reasonNotApproved, decision.Why), nil
	}
	return p.end(v1alpha1.DispositionPending, p.spec.SHA, decision.PendingReason(),
		decision.Why+" "+p.authz.Approvers(p.authzEvent())), nil
}

// authzEvent returns the event as far as it is known.
func (p *planner) authzEvent() authz.Event {
	return authz.Event{Name: p.Event.Name, Spec: p.spec, Command: p.command, Rerun: p.rerun != nil}
}

// recorded returns the recorded events with the same subject. They are read once.
func (p *planner) recorded(ctx context.Context) ([]history.Record, error) {
	if p.past != nil {
		return *p.past, nil
	}
	var all []history.Record
	var err error
	switch {
	case p.rerun != nil && p.RecordsOf != nil: // it was recorded as an event of its commit
		all, err = p.RecordsOf(ctx, p.spec.Subjects())
	case p.Records != nil:
		all, err = p.Records(ctx)
	}
	if err != nil {
		return nil, err
	}
	p.past = &all
	return all, nil
}
