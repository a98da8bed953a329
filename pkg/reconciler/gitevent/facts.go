// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/expression"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/match"
	"github.com/plumbline-ci/plumbline/pkg/resolve"
	"github.com/plumbline-ci/plumbline/pkg/template"
)

// facts is what one attempt to plan learnt by asking, for all pipelines: each thing once and only if a decision depends
// on it, so that a service that does not answer keeps nobody waiting who would decline anyway.
type facts struct {
	// scope is what placeholders stand for.
	scope *template.Scope
	// event is what annotations are matched against.
	event match.Event
	// pulls are the pull requests that hold the commit.
	pulls []git.Pull
	// asked holds the answer to each question: nil, or why there is none.
	asked map[string]error
}

// cut tells whether a list of changed files that the Git service had cut was read since it was asked last.
func (f *facts) cut() bool {
	used := f.scope.UsedFiles()
	return used && f.event.Changed != nil && f.event.Changed.Truncated
}

func (w *work) newFacts(head git.Head, repository *pacv1alpha1.Repository) (*facts, error) {
	scope, err := template.New(template.Facts{
		Key: w.event.Name, Variables: resolve.Variables(&w.event.Spec, head, repository.Namespace), Headers: w.event.Spec.Headers, Params: params(repository),
	})
	if err != nil {
		return nil, fmt.Errorf("reading the params of Repository %s/%s: %w", repository.Namespace, repository.Name, err)
	}
	f := &facts{scope: scope, event: match.Of(&w.event.Spec, head.Commit.Title), asked: map[string]error{}}
	f.event.Params = scope.Params()
	return f, nil
}

// params are the custom params of a Repository.
func params(repository *pacv1alpha1.Repository) []template.Param {
	if repository.Spec.Params == nil {
		return nil
	}
	var all []template.Param
	for i, p := range *repository.Spec.Params {
		param := template.Param{Name: p.Name, Value: p.Value, Filter: p.Filter, Field: fmt.Sprintf("spec.params[%d]", i)}
		if p.SecretRef != nil {
			param.Secret = &template.SecretRef{Name: p.SecretRef.Name, Key: p.SecretRef.Key}
		}
		all = append(all, param)
	}
	return all
}

// selects matches a definition against the event. One that was selected before stays so: only what it refers to is open.
func (w *work) selects(ctx context.Context, c *candidate, d draft) {
	if run := w.runOf(c.definition); run != nil {
		c.selection = match.Decision{Selected: true, Reason: cmp.Or(c.decision.Selected, match.Selected), Incomplete: run.Note != ""}
		return
	}
	if c.err = c.definition.Err; c.err != nil {
		if w.event.Spec.Comment != nil { // each comment would tell it again, and the pull request's own event does
			c.err = fault.Ignoredf("NotSelected", "%s", fault.Of(c.err).Message)
		}
		return
	}
	c.err = w.learning(ctx, d.facts, func() (err error) {
		c.selection, err = matches(c.definition, d)
		return err
	})
	c.selection.Incomplete = d.facts.cut() || c.selection.Incomplete
	if c.selection.Incomplete {
		c.selection.Reason += "; " + incompleteFiles
	}
	c.selection.Reason = d.facts.event.Params.Mask(c.selection.Reason)
	if c.err == nil && !c.selection.Selected {
		c.err = fault.Ignoredf("NotSelected", "%s", c.selection.Reason)
	}
}

func matches(definition resolve.Definition, d draft) (match.Decision, error) {
	if d.facts.event.EventType == match.CommentEvent {
		definition.Annotations = match.OfComments(definition.Annotations)
	}
	annotations, err := d.set.Annotations(definition, d.facts.scope)
	if err != nil {
		return match.Decision{}, err
	}
	decision, err := match.Select(d.facts.event, match.Pipeline{Name: definition.Name, Annotations: annotations})
	if err != nil {
		return match.Decision{}, fmt.Errorf("%s: %w", definition.File, err)
	}
	if decision.Needs.Any() {
		return match.Decision{}, &template.Unknown{Needs: decision.Needs}
	}
	return decision, nil
}

// incompleteFiles is said wherever a decision was made from a list that the Git service had cut.
const incompleteFiles = "the Git service did not list all changed files"

// learning repeats what needs to know more until it knows enough, or cannot learn it.
func (w *work) learning(ctx context.Context, known *facts, do func() error) error {
	for {
		err := do()
		needs, unknown := template.NeedsOf(err)
		if !unknown {
			return known.scope.Conceal(err)
		}
		if err := w.learn(ctx, needs, known); err != nil {
			return err
		}
	}
}

// learn fills in what is needed. A question that failed is not asked again in this attempt.
func (w *work) learn(ctx context.Context, needs template.Needs, known *facts) error {
	questions := map[string]func() error{}
	if needs.Changed {
		questions["changed"] = func() error { return w.changed(ctx, known) }
	}
	if needs.Body {
		questions["body"] = func() error { return w.body(ctx, known) }
	}
	if needs.Pulls {
		questions["pulls"] = func() error { return w.pulls(ctx, known) }
	}
	for _, ref := range needs.Secrets {
		questions["secret "+ref.Name+"/"+ref.Key] = func() error { return w.secret(ctx, ref, known) }
	}
	for _, name := range slices.Sorted(maps.Keys(questions)) {
		err, asked := known.asked[name]
		if !asked {
			err = questions[name]()
			known.asked[name] = err
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *work) changed(ctx context.Context, known *facts) error {
	client, err := w.session.Connect(ctx)
	if err != nil {
		return err
	}
	c, err := client.Changed(ctx, &w.event.Spec)
	if err != nil {
		return fmt.Errorf("listing the changed files: %w", err)
	}
	known.event.Changed = &match.Changes{Added: c.Added, Modified: c.Modified, Deleted: c.Deleted, Renamed: c.Renamed, Truncated: c.Truncated}
	known.scope.Learn(template.Facts{Files: expression.ChangedFiles(c.Added, c.Deleted, c.Modified, c.Renamed)})
	return nil
}

func (w *work) body(ctx context.Context, known *facts) error {
	data, err := w.storedBlob(ctx, w.event.Spec.Payload)
	if err != nil {
		return fmt.Errorf("reading the payload: %w", err)
	}
	body := map[string]any{}
	if err := json.Unmarshal(data, &body); err != nil {
		return fault.Operatorf("BadPayload", "decoding the payload: %w", err)
	}
	known.event.Body = body
	known.scope.Learn(template.Facts{Body: body})
	return nil
}

// pulls asks which pull requests hold the commit. The merged one's number is a variable of pushes.
func (w *work) pulls(ctx context.Context, known *facts) error {
	client, err := w.session.Connect(ctx)
	if err != nil {
		return err
	}
	pulls, err := client.Pulls(ctx, w.event.Spec.SHA)
	if err != nil {
		return fmt.Errorf("asking whether commit %s is in an open pull request: %w", w.event.Spec.SHA, err)
	}
	merged := int64(0)
	for _, pull := range pulls {
		if pull.Merged && merged == 0 {
			merged = pull.Number
		}
	}
	known.pulls = pulls
	known.scope.Learn(template.Facts{MergedPull: &merged})
	return nil
}

func (w *work) secret(ctx context.Context, ref template.SecretRef, known *facts) error {
	value, err := w.readSecret(ctx, ref)
	if err != nil {
		return err
	}
	known.scope.Learn(template.Facts{Secrets: map[template.SecretRef]string{ref: value}})
	return nil
}

// leaveToPull declines everything when the commit of a push is in an open pull request, whose own event runs it. Nobody
// is asked when nothing would run. An error is not an answer: to guess could run the commit twice (B14).
func (w *work) leaveToPull(ctx context.Context, candidates []*candidate, known *facts) {
	spec := &w.event.Spec
	if !w.config.SkipPushOfPulls || spec.Trigger != v1alpha1.TriggerPush || !strings.HasPrefix(spec.BaseRef, "refs/heads/") {
		return
	}
	wanted := slices.DeleteFunc(slices.Clone(candidates), func(c *candidate) bool {
		declined := c.err != nil && !fault.Is(c.err, fault.Invalid)
		return declined || w.runOf(c.definition) != nil
	})
	if len(wanted) == 0 {
		return
	}
	err := w.learn(ctx, template.Needs{Pulls: true}, known)
	for _, pull := range known.pulls {
		if pull.Open {
			err = fault.Ignoredf("InPullRequest",
				"the commit is in open pull request #%d, whose own event runs it (skip-push-event-for-pr-commits)", pull.Number)
			break
		}
	}
	if err == nil {
		return
	}
	for _, c := range wanted {
		c.err = err
	}
}
