// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/blob"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/match"
)

// facts is what one attempt to plan learnt by asking, for all pipelines: each thing once and only if a decision depends
// on it, so that a service that does not answer keeps nobody waiting who would decline anyway.
type facts struct {
	changed    *match.Changes
	changedErr error
	body       map[string]any
	bodyErr    error
}

// of completes an event with what is known.
func (f *facts) of(event match.Event) match.Event {
	event.Changed, event.Body = f.changed, f.body
	return event
}

// selects matches a definition against the event. One that was selected before stays so: only what it refers to is open.
func (w *work) selects(ctx context.Context, c *candidate, d draft, known *facts) {
	if run := w.runOf(c.definition); run != nil {
		c.selection = match.Decision{Selected: true, Reason: match.Selected, Incomplete: run.Note != ""}
		return
	}
	if c.err = c.definition.Err; c.err != nil {
		return
	}
	event := match.Of(&w.event.Spec, d.head.Commit.Title)
	pipeline := match.Pipeline{Name: c.definition.Name, Annotations: d.set.Annotations(c.definition, d.variables)}
	for c.err == nil {
		c.selection, c.err = match.Select(known.of(event), pipeline)
		if c.err != nil {
			c.err = fmt.Errorf("%s: %w", c.definition.File, c.err)
			return
		}
		if c.selection.Needs == (match.Needs{}) {
			break
		}
		c.err = w.learn(ctx, c.selection.Needs, known)
	}
	if c.selection.Incomplete {
		c.selection.Reason += "; " + incompleteFiles
	}
	if c.err == nil && !c.selection.Selected {
		c.err = fault.Ignoredf("NotSelected", "%s", c.selection.Reason)
	}
}

// incompleteFiles is said wherever a decision was made from a list that the Git service had cut.
const incompleteFiles = "the Git service did not list all changed files"

// learn fills in what is needed and not known. A question that failed is not asked again in this attempt.
func (w *work) learn(ctx context.Context, needs match.Needs, known *facts) error {
	if needs.Changed && known.changed == nil && known.changedErr == nil {
		known.changed, known.changedErr = w.changed(ctx)
	}
	if needs.Changed && known.changedErr != nil {
		return known.changedErr
	}
	if needs.Body && known.body == nil && known.bodyErr == nil {
		known.body, known.bodyErr = w.body(ctx)
	}
	if needs.Body {
		return known.bodyErr
	}
	return nil
}

func (w *work) changed(ctx context.Context) (*match.Changes, error) {
	client, err := w.connect(ctx)
	if err != nil {
		return nil, err
	}
	c, err := client.Changed(ctx, &w.event.Spec)
	if err != nil {
		return nil, fmt.Errorf("listing the changed files: %w", err)
	}
	return &match.Changes{Added: c.Added, Modified: c.Modified, Deleted: c.Deleted, Renamed: c.Renamed, Truncated: c.Truncated}, nil
}

func (w *work) body(ctx context.Context) (map[string]any, error) {
	data, err := blob.Read(ctx, w.r.payloads, w.event.Spec.Payload)
	if err != nil {
		return nil, fmt.Errorf("reading the payload: %w", err)
	}
	body := map[string]any{}
	if err := json.Unmarshal(data, &body); err != nil {
		return nil, fault.Operatorf("BadPayload", "decoding the payload: %w", err)
	}
	return body, nil
}

// leaveToPull declines everything when the commit of a push is in an open pull request, whose own event runs it. Nobody
// is asked when nothing would run. An error is not an answer: to guess could run the commit twice (B14).
func (w *work) leaveToPull(ctx context.Context, candidates []*candidate) {
	spec := &w.event.Spec
	if !w.config.SkipPushOfPulls || spec.Trigger != v1alpha1.TriggerPush || !strings.HasPrefix(spec.BaseRef, "refs/heads/") {
		return
	}
	var wanted []*candidate
	for _, c := range candidates {
		if (c.err == nil || fault.Is(c.err, fault.Invalid)) && w.runOf(c.definition) == nil {
			wanted = append(wanted, c)
		}
	}
	if len(wanted) == 0 {
		return
	}
	err := w.notInOpenPull(ctx, spec.SHA)
	for _, c := range wanted {
		if err != nil {
			c.err = err
		}
	}
}

// notInOpenPull returns an Ignored fault that names the open pull request that holds the commit.
func (w *work) notInOpenPull(ctx context.Context, sha string) error {
	client, err := w.connect(ctx)
	if err != nil {
		return err
	}
	pulls, err := client.Pulls(ctx, sha)
	if err != nil {
		return fmt.Errorf("asking whether commit %s is in an open pull request: %w", sha, err)
	}
	for _, pull := range pulls {
		if pull.Open {
			return fault.Ignoredf("InPullRequest", "the commit is in open pull request #%d, whose own event runs it (skip-push-event-for-pr-commits)", pull.Number)
		}
	}
	return nil
}
