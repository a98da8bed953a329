// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// admit asks who may start the event and returns its end when it is not allowed, nil when it is.
func (p *planner) authorize(ctx context.Context) (*Plan, error) {
	decision, err := p.authz.Decide(ctx, p.authzEvent())
	p.Basis = decision.Basis
	switch {
	case err != nil || decision.Allowed:
		return nil, err
	case p.spec.EventType == match.LabelEvent || p.spec.Comment != nil || p.rerun != nil:
		// The check of the pull request's own event asks for approval already; each label would add
		// another one. A comment and a re-run must leave nothing on the commit unless they may
		// start something.
		return p.end(v1alpha1.DispositionIgnored, p.spec.SHA, "NotApproved", decision.Why), nil
	}
	return p.end(
		v1alpha1.DispositionPending,
		p.spec.SHA,
		decision.PendingReason(),
		decision.Why+" "+p.authz.Approvers(p.authzEvent()),
	), nil
}

// known is the event as far as it is known by now.
func (p *planner) authzEvent() authz.Event {
	return authz.Event{Name: p.Event.Name, Spec: p.spec, Command: p.command, Rerun: p.rerun != nil}
}

// recorded is what was recorded of the event's subject. It is asked for once.
func (p *planner) recorded(ctx context.Context) ([]history.Record, error) {
	if p.past != nil {
		return *p.past, nil
	}
	var all []history.Record
	var err error
	switch {
	case p.rerun != nil && p.RecordsOf != nil: // it was recorded as one of its commit
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
