// SPDX-License-Identifier: Apache-2.0

// Package match selects the pipelines that an event starts, by their annotations. For each other
// pipeline it returns the clause that did not match. It is pure: no client, no clock, no logger.
package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/cel"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

// Selected starts the reason for a pipeline that is selected. The clauses that matched follow it.
const Selected = "selected"

// Event is the part of an event that pipelines are matched against. Matching never changes it, so
// that no pipeline affects another one.
type Event struct {
	// Trigger is what on-event lists.
	Trigger v1alpha1.Trigger
	// EventType is the Git service's own name of the event ("Merge Request"), LabelEvent, or
	// CommentEvent.
	EventType string
	// BaseRef is the ref pushed to ("refs/heads/main", "refs/tags/v1"), or a pull request's target
	// branch ("main").
	BaseRef string
	// HeadRef is BaseRef for a push, the source branch of a pull request.
	HeadRef string
	// Namespace is the Repository's.
	Namespace string
	// Title is the pull request's, or the first line of the pushed commit's message.
	Title string
	// TargetURL and SourceURL are web URLs of the repositories that BaseRef and HeadRef are in.
	TargetURL, SourceURL string
	// Labels are the pull request's.
	Labels []string
	// Comment is the text of a CommentEvent.
	Comment string
	// Headers are the delivery's, in any case.
	Headers map[string]string
	// Params are the Repository's custom params.
	Params template.Params
	// Changed are the changed files; nil as long as they are not known.
	Changed *Changes
	// Body is the payload as the service sent it, decoded; nil as long as it is not known.
	Body map[string]any
}

// Of returns what is known of an event without a call to the Git service. title is the first line
// of the commit's message.
func Of(spec *v1alpha1.GitEventSpec, title string) Event {
	event := Event{
		Trigger:   spec.Trigger,
		EventType: spec.EventType,
		BaseRef:   spec.BaseRef,
		HeadRef:   spec.HeadRef,
		Namespace: spec.Repository.Namespace,
		Title:     title,
		TargetURL: spec.Project.URL,
		SourceURL: spec.HeadURL,
		Headers:   spec.Headers,
	}
	if spec.PullRequest != nil {
		event.Title, event.Labels = spec.PullRequest.Title, spec.PullRequest.Labels
	}
	if spec.Comment != nil {
		event.Comment = spec.Comment.Body
	}
	return event
}

// LabelEvent is the EventType of a label that was added to a pull request. It starts only pipelines
// that read labels.
const LabelEvent = "pull_request_labeled"

// CommentEvent is the EventType of a comment on a pull request. It starts only pipelines with
// on-comment.
const CommentEvent = "on-comment"

// Changes are the files that an event changed.
type Changes struct {
	Added, Modified, Deleted, Renamed []string
	// Truncated is true when the service did not list all of them.
	Truncated bool

	// all is the result of paths, if it is known.
	all []string
}

// ChangesOf returns the files of a Git service's answer.
func ChangesOf(c git.Changes) *Changes {
	changes := &Changes{
		Added:     c.Added,
		Modified:  c.Modified,
		Deleted:   c.Deleted,
		Renamed:   c.Renamed,
		Truncated: c.Truncated,
	}
	changes.all = changes.paths() // every pipeline asks for it
	return changes
}

// Files is what expressions and placeholders see of them.
func (c *Changes) Files() map[string]any {
	return cel.ChangedFiles(c.Added, c.Deleted, c.Modified, c.Renamed)
}

// Pipeline is the part of a definition that says when it runs.
type Pipeline struct {
	// Name is the author's name of it.
	Name string
	// Annotations are those of the PipelineRun, with the template variables replaced.
	Annotations map[string]string
}

// Selection says what a pipeline's annotations decide about an event.
type Selection struct {
	// Selected is true when the event starts the pipeline.
	Selected bool
	// Reason says why, or why not, in one clause that shows the values that were compared.
	Reason string
	// Incomplete is true when the decision was made from a list of changed files that the Git
	// service had cut.
	Incomplete bool
	// Needs is what must be known before the decision. The other fields are empty then.
	Needs template.Needs
}

// Select reports whether the event starts the pipeline, and why. It requests an unknown value only
// if the known values do not decide. The error is always a fault.Invalid: an annotation is not
// written as docs/language.md says. Neither the decision nor the error contains a secret.
func Select(ev Event, p Pipeline) (Selection, error) {
	d, err := decide(ev, p.Annotations)
	if needs, unknown := template.NeedsOf(err); unknown {
		return Selection{Needs: needs}, nil
	}
	if err != nil {
		return Selection{}, ev.Params.Conceal(fmt.Errorf("pipeline %s: %w", p.Name, err))
	}
	d.Reason = ev.Params.Mask(d.Reason)
	return d, nil
}

// OnlyPaths reports whether a pipeline that does not match would match another list of changed
// files: everything else matches, or does not matter.
func OnlyPaths(ev Event, p Pipeline) bool {
	ev.Changed = nil
	d, err := Select(ev, p)
	return err == nil && d.Needs.Changed
}

// OfPulls reports whether pull requests may start the pipeline. An expression may exclude them by
// the events that it mentions.
func OfPulls(p Pipeline) bool {
	const pull, push = string(v1alpha1.TriggerPullRequest), string(v1alpha1.TriggerPush)
	if text, found := p.Annotations[pipelinesascode.OnCELExpression]; found {
		return strings.Contains(text, pull) || !strings.Contains(text, push)
	}
	events, _, err := lookup(p.Annotations, pipelinesascode.OnEvent)
	return err == nil && slices.Contains(events, pull)
}

// Automatic reports whether events of this Repository may start the pipeline without being asked to
// by name.
func Automatic(ev Event, p Pipeline) bool {
	_, lists := p.Annotations[pipelinesascode.OnEvent]
	_, expression := p.Annotations[pipelinesascode.OnCELExpression]
	return (lists || expression) && elsewhere(ev, p.Annotations).Reason == ""
}

func decide(ev Event, annotations map[string]string) (Selection, error) {
	if d := elsewhere(ev, annotations); d.Reason != "" {
		return d, nil
	}
	if ev.EventType == CommentEvent {
		return onComment(ev, annotations)
	}
	if text, found := annotations[pipelinesascode.OnCELExpression]; found {
		return onExpression(ev, text, annotations)
	}
	var agreed []string
	for _, clause := range []clause{labelled, onEvent, onTargetBranch, onLabel, onPathChange, onPathChangeIgnore} {
		d, err := clause(ev, annotations)
		switch {
		case err != nil:
			return Selection{}, err
		case d.Selected:
			agreed = append(agreed, d.Reason)
		case d.Reason != "" || d.Needs.Any():
			return d, nil
		}
	}
	return Selection{
		Selected:   true,
		Reason:     selected(agreed...) + hint(annotations, pipelinesascode.OnPathChangeIgnore),
		Incomplete: incomplete(ev, annotations),
	}, nil
}

// elsewhere returns the decision against a pipeline of another namespace.
func elsewhere(ev Event, annotations map[string]string) Selection {
	if namespace, found := annotations[pipelinesascode.TargetNamespace]; found && namespace != ev.Namespace {
		return declined("target-namespace is %q and the Repository of this URL is in %q", shorten(namespace), ev.Namespace)
	}
	return Selection{}
}

// clause returns why the event matches or does not match, or what must be known first. It returns
// an empty Decision when the pipeline does not have the annotation.
type clause func(Event, map[string]string) (Selection, error)

// agrees returns the decision of one clause that matches.
func agrees(format string, args ...any) Selection {
	return Selection{Selected: true, Reason: fmt.Sprintf(format, args...)}
}

// selected returns the reason of a selected pipeline, made of the clauses that matched. A settled
// event stores it, so its total length is bounded.
func selected(clauses ...string) string {
	return Selected + ": " + shorten(strings.Join(clauses, "; "))
}

func declined(format string, args ...any) Selection {
	return Selection{Reason: fmt.Sprintf(format, args...)}
}

func onEvent(ev Event, annotations map[string]string) (Selection, error) {
	events, found, err := lookup(annotations, pipelinesascode.OnEvent)
	if err != nil {
		return Selection{}, err
	}
	if !found {
		return declined("no annotation on-event%s", misspelt(annotations, pipelinesascode.OnEvent)), nil
	}
	for _, event := range ev.events() {
		if slices.Contains(events, event) {
			return agrees("on-event includes %s", event), nil
		}
	}
	return declined("on-event %s does not include %s%s", show(events), ev.Trigger, eventHint(annotations, events)), nil
}

// events returns the values of on-event that the event is. A request to /incoming is a push, too,
// as in Pipelines-as-Code.
func (ev Event) events() []string {
	if ev.EventType == v1alpha1.EventIncoming {
		return []string{v1alpha1.EventIncoming, string(ev.Trigger)}
	}
	return []string{string(ev.Trigger)}
}

func onTargetBranch(ev Event, annotations map[string]string) (Selection, error) {
	patterns, found, err := lookup(annotations, pipelinesascode.OnTargetBranch)
	if err != nil {
		return Selection{}, err
	}
	if !found {
		return declined("no annotation on-target-branch%s", misspelt(annotations, pipelinesascode.OnTargetBranch)), nil
	}
	ref := strings.TrimPrefix(ev.BaseRef, branchPrefix)
	for _, pattern := range patterns {
		matches, err := matchRef(pattern, ev.BaseRef)
		if err != nil {
			return Selection{}, fmt.Errorf("annotation %s: %w", pipelinesascode.OnTargetBranch, err)
		}
		if matches {
			return agrees("on-target-branch %s matches %s", show([]string{pattern}), ref), nil
		}
	}
	return declined("on-target-branch %s does not match %s%s",
		show(patterns), ref, hint(annotations, pipelinesascode.OnTargetBranch)), nil
}

// lookup reads the list an annotation holds.
func lookup(annotations map[string]string, name string) (items []string, found bool, err error) {
	value, found := annotations[name]
	if !found {
		return nil, false, nil
	}
	items, err = list(name, value)
	return items, true, err
}
