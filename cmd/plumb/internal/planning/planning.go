// SPDX-License-Identifier: Apache-2.0

// Package planning runs the controller's planner for one event, with answers from a working tree.
package planning

import (
	"context"
	"errors"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/delivery"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/settings"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/worktree"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resolve"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/plan/references"
)

// Request is an event to plan.
type Request struct {
	Tree *worktree.Tree
	// Delivery is what the event was decoded from; Spec is the event, with its Repository.
	Delivery delivery.Delivery
	Spec     *v1alpha1.GitEventSpec
	Settings *settings.Settings
	// At is the commit to read .tekton at; worktree.OnDisk means the files on disk.
	At string
	// From and To are the branches of the pull request that a comment is on.
	From, To string
	// Number is the number of the merged pull request that caused a push; 0 for none.
	Number int64
	// Changed are the changed files. If it is nil, Git lists them.
	Changed *git.Changes
	// Namespace is Plumbline's own, Version its version.
	Namespace, Version string
	// Given says which facts of the event are real.
	Given Given
	// Web reads web addresses; nil leaves references to them open.
	Web references.Web
}

// Given says which facts of an event the user gave; plumb makes the others up.
type Given struct {
	// Sender and Number are true if the sender, or the number of the pull request, is given.
	Sender, Number bool
	// Author is the author of the pull request who may not write to the repository, "" for one who
	// may.
	Author string
}

// Files counts the changed files of an event.
type Files struct{ Count, Uncommitted int }

// Result is a plan with the files and assumptions that it depends on.
type Result struct {
	// Event is the GitEvent's name.
	Event string
	Plan  *plan.Plan
	// Files are those that were read.
	Files []git.File
	// Given is the request's. From and To are the branches of a described pull request; a described
	// push comes from the branch From.
	Given    Given
	From, To string
	// Changed is nil if the changed files are not known.
	Changed *Files
	// Scope knows the names of the variables and of the Repository's params.
	Scope *template.Scope
	// Assumed are sentences about what plumb could not look up.
	Assumed []string
	// Reveal has the name of the secret that each marker stands for, never its value.
	Reveal map[string]string
}

// Make plans the event.
func Make(ctx context.Context, r Request) (*Result, error) {
	name := r.Spec.EventName()
	in := plan.Input{
		Event:      plan.Event{Namespace: r.Namespace, Name: name, Spec: r.Spec},
		Repository: r.Settings.Repository, Config: r.Settings.Config, Version: r.Version,
	}
	plans := withoutSecrets
	if r.Settings.Secret != nil {
		plans = withSecrets
	}
	result, err := plans(ctx, r, in)
	if nowhere := (*nothing)(nil); errors.As(err, &nowhere) {
		return nil, nowhere // where it was being read says nothing more
	}
	if err != nil {
		return nil, err
	}
	result.Given = r.Given
	if !r.Delivery.Recorded {
		result.From, result.To = r.From, r.To
	}
	result.Changed = newLocal(r).count(ctx, result.Plan.Spec)
	result.Scope, err = names(r)
	return result, err
}

// names returns a scope that has the names of the variables and params, without their values.
func names(r Request) (*template.Scope, error) {
	facts := template.Facts{Variables: resolve.Variables(r.Spec, git.Head{}, "")}
	for _, param := range ptr.Deref(r.Settings.Repository.Spec.Params, nil) {
		facts.Params = append(facts.Params, template.Param{Name: param.Name})
	}
	return template.New(facts)
}

// withSecrets plans with the values of the cluster's Secrets, and hides them in the result.
func withSecrets(ctx context.Context, r Request, in plan.Input) (*Result, error) {
	l := newLocal(r)
	known := map[string]string{} // what to show, by value
	sources := l.sources()
	sources.Secret = func(ctx context.Context, ref template.SecretRef) (string, error) {
		value, err := r.Settings.Secret(ctx, ref)
		if err == nil {
			known[value] = shown(ref)
		}
		return value, err
	}
	made, err := plan.Make(ctx, in, sources)
	if err != nil {
		return nil, err
	}
	result := l.result(in, made)
	for marker, value := range made.Secrets {
		result.Reveal[marker] = "<secret>"
		if text, found := known[value]; found {
			result.Reveal[marker] = text
		}
	}
	return result, nil
}

// withoutSecrets plans twice if a secret matters. The first plan has no value for it, and shows
// what starts in any case. The second has a placeholder, and shows the PipelineRuns. A decision
// that depends on the value stays open.
func withoutSecrets(ctx context.Context, r Request, in plan.Input) (*Result, error) {
	l := newLocal(r)
	asked := map[template.SecretRef]bool{}
	sources := l.sources()
	sources.Secret = func(_ context.Context, ref template.SecretRef) (string, error) {
		asked[ref] = true
		return "", secretNotRead(in.Repository.Namespace, ref)
	}
	made, err := plan.Make(ctx, in, sources)
	if err != nil {
		return nil, err
	}
	if len(asked) == 0 {
		return l.result(in, made), nil
	}
	sources.Secret = func(_ context.Context, ref template.SecretRef) (string, error) { return shown(ref), nil }
	again, err := plan.Make(ctx, in, sources)
	if err != nil {
		return nil, err
	}
	keepOpen(in.Event.Name, made, again)
	result := l.result(in, again)
	result.Reveal = again.Secrets
	return result, nil
}

// keepOpen resets the decisions that depend on a secret's value to what is known without it.
func keepOpen(event string, without, with *plan.Plan) {
	if len(without.Decisions) != len(with.Decisions) {
		return
	}
	for i, decision := range without.Decisions {
		if !decision.Open || decision.Selected != "" {
			continue
		}
		with.Decisions[i] = decision
		name := RunName(event, decision)
		for j := range with.Runs {
			if with.Runs[j].Name == name {
				with.Runs = append(with.Runs[:j:j], with.Runs[j+1:]...)
				break
			}
		}
	}
}

// RunName is the name that the PipelineRun of a definition has, or would have.
func RunName(event string, d v1alpha1.Decision) string {
	return resources.RunName(event, d.File, d.Document, strings.TrimSuffix(d.Pipeline, "-"))
}

// shown returns the placeholder of a secret.
func shown(ref template.SecretRef) string { return "<secret " + ref.Name + "/" + ref.Key + ">" }
