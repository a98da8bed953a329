// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/blob"
	"github.com/plumbline-ci/plumbline/pkg/expression"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/match"
	"github.com/plumbline-ci/plumbline/pkg/resolve"
	"github.com/plumbline-ci/plumbline/pkg/template"
)

// choice is what its annotations say of one definition; err is the author's to mend.
type choice struct {
	match.Decision
	err error
}

// choices decides about every definition of the set, in its order. What costs a call is learnt once, for all, and only
// if a definition depends on it: a service that does not answer keeps nobody waiting who would decline anyway.
func (w *work) choices(ctx context.Context, d draft) ([]choice, error) {
	event := match.Of(&w.event.Spec, d.head.Commit.Title)
	event.Params = d.scope.Params()
	definitions := d.set.Definitions()
	all := make([]choice, len(definitions))
	for {
		needs := template.Needs{}
		for i, definition := range definitions {
			c := &all[i]
			if c.err != nil || c.Reason != "" {
				continue
			}
			c.Decision, c.err = selects(event, d, definition)
			needs.Add(c.Needs)
		}
		if !needs.Any() {
			return all, w.leaveToPull(ctx, all)
		}
		if err := w.learn(ctx, needs, d.scope, &event); err != nil {
			return nil, err
		}
	}
}

func selects(event match.Event, d draft, definition resolve.Definition) (match.Decision, error) {
	if definition.Err != nil {
		return match.Decision{}, definition.Err
	}
	annotations, err := d.set.Annotations(definition, d.scope)
	if needs, unknown := template.NeedsOf(err); unknown {
		return match.Decision{Needs: needs}, nil
	}
	if err != nil {
		return match.Decision{}, err
	}
	decision, err := match.Select(event, match.Pipeline{Name: definition.Name, Annotations: annotations})
	if err != nil {
		return match.Decision{}, fmt.Errorf("%s: %w", definition.File, err)
	}
	if decision.Incomplete {
		decision.Reason += "; " + incompleteFiles
	}
	return decision, nil
}

// incompleteFiles is said wherever a decision was made from a list that the Git service had cut.
const incompleteFiles = "the Git service did not list all changed files"

// learn fills in what is needed and not known.
func (w *work) learn(ctx context.Context, needs template.Needs, scope *template.Scope, event *match.Event) error {
	if len(needs.Secrets) > 0 {
		return fault.Operatorf("ParamsNotServed", "the secrets of spec.params are not read by this version yet")
	}
	if needs.Pulls {
		none := int64(0) // which merged pull request holds a pushed commit is not asked for yet
		scope.Learn(template.Facts{MergedPull: &none})
	}
	if needs.Changed {
		client, err := w.connect(ctx)
		if err != nil {
			return err
		}
		c, err := client.Changed(ctx, &w.event.Spec)
		if err != nil {
			return fmt.Errorf("listing the changed files: %w", err)
		}
		event.Changed = &match.Changes{Added: c.Added, Modified: c.Modified, Deleted: c.Deleted, Renamed: c.Renamed, Truncated: c.Truncated}
		scope.Learn(template.Facts{Files: expression.ChangedFiles(c.Added, c.Deleted, c.Modified, c.Renamed)})
	}
	if needs.Body {
		data, err := blob.Read(ctx, w.r.payloads, w.event.Spec.Payload)
		if err != nil {
			return fmt.Errorf("reading the payload: %w", err)
		}
		event.Body = map[string]any{}
		if err := json.Unmarshal(data, &event.Body); err != nil {
			return fault.Operatorf("BadPayload", "decoding the payload: %w", err)
		}
		scope.Learn(template.Facts{Body: event.Body})
	}
	return nil
}

// leaveToPull declines everything when the commit of a push is in an open pull request, whose own event runs it. Nobody
// is asked when nothing would run. An error is not an answer: to guess could run the commit twice (B14).
func (w *work) leaveToPull(ctx context.Context, all []choice) error {
	spec := &w.event.Spec
	if !w.config.SkipPushOfPulls || spec.Trigger != v1alpha1.TriggerPush || !strings.HasPrefix(spec.BaseRef, "refs/heads/") || !wanted(all) {
		return nil
	}
	client, err := w.connect(ctx)
	if err != nil {
		return err
	}
	pulls, err := client.Pulls(ctx, spec.SHA)
	if err != nil {
		return fmt.Errorf("asking whether commit %s is in an open pull request: %w", spec.SHA, err)
	}
	for _, pull := range pulls {
		if pull.Open {
			decline(all, fmt.Sprintf("the commit is in open pull request #%d, whose own event runs it (skip-push-event-for-pr-commits)", pull.Number))
			return nil
		}
	}
	return nil
}

// wanted tells whether the event would leave anything on the commit.
func wanted(all []choice) bool {
	for _, c := range all {
		if c.Selected || c.err != nil {
			return true
		}
	}
	return false
}

func decline(all []choice, reason string) {
	for i, c := range all {
		if c.Selected || c.err != nil {
			all[i] = choice{Decision: match.Decision{Reason: reason}}
		}
	}
}
