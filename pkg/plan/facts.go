// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resolve"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

// facts is what one attempt to plan learnt by asking, for all pipelines: each thing once and only
// if a decision depends on it, so that a service that does not answer keeps nobody waiting who
// would decline anyway.
type facts struct {
	sources Sources
	// spec is the event that is asked about.
	spec *v1alpha1.GitEventSpec
	// scope is what placeholders stand for.
	scope *template.Scope
	// event is what annotations are matched against.
	event match.Event
	// pulls are the pull requests that hold the commit.
	pulls []git.Pull
	// withheld are the params whose secrets the runs do not get, by what they refer to.
	withheld map[template.SecretRef]string
	// asked holds the answer to each question: nil, or why there is none.
	asked map[string]error
}

// cut reports whether a list of changed files that the Git service had cut was read since it was
// asked last.
func (f *facts) truncatedUsed() bool {
	used := f.scope.UsedFiles()
	return used && f.event.Changed != nil && f.event.Changed.Truncated
}

func (p *planner) newFacts(head git.Head) (*facts, error) {
	return p.factsOf(head, append(params(p.Repository), p.arguments()...))
}

// factsOf returns facts with these params.
func (p *planner) factsOf(head git.Head, params []template.Param) (*facts, error) {
	repository := p.Repository
	scope, err := template.New(template.Facts{
		Key:       p.Event.Name,
		Variables: resolve.Variables(p.spec, head, repository.Namespace),
		Headers:   p.spec.Headers,
		Params:    params,
	})
	if err != nil {
		return nil, fmt.Errorf("reading the params of Repository %s/%s: %w", repository.Namespace, repository.Name, err)
	}
	f := &facts{
		sources: p.Sources,
		spec:    p.spec,
		scope:   scope,
		event:   match.Of(p.spec, head.Commit.Title),
		asked:   map[string]error{},
	}
	f.event.Params = scope.Params()
	if p.Approval != nil {
		f.withheld = withheld(repository)
	}
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

// share takes over what other facts of the event have learnt of the delivery and its commit.
func (f *facts) share(from *facts) {
	if f.event.Body == nil && from.event.Body != nil {
		f.event.Body = from.event.Body
		f.scope.Learn(template.Facts{Body: f.event.Body})
	}
	if f.event.Changed == nil && from.event.Changed != nil {
		f.event.Changed = from.event.Changed
		f.scope.Learn(template.Facts{Files: f.event.Changed.Files()})
	}
}

// learning repeats what needs to know more until it knows enough, or cannot learn it.
func (f *facts) withFacts(ctx context.Context, do func() error) error {
	for {
		err := do()
		needs, unknown := template.NeedsOf(err)
		if !unknown {
			return f.scope.Conceal(err)
		}
		if err := f.learn(ctx, needs); err != nil {
			return err
		}
	}
}

// learn fills in what is needed. A question that failed is not asked again in this attempt.
func (f *facts) learn(ctx context.Context, needs template.Needs) error {
	questions := map[string]func() error{}
	if needs.Changed {
		questions["changed"] = func() error { return f.learnChanged(ctx) }
	}
	if needs.Body {
		questions["body"] = func() error { return f.learnBody(ctx) }
	}
	if needs.Pulls {
		questions["pulls"] = func() error { return f.learnPulls(ctx) }
	}
	for _, ref := range needs.Secrets {
		questions["secret "+ref.Name+"/"+ref.Key] = func() error { return f.learnSecret(ctx, ref) }
	}
	for _, name := range slices.Sorted(maps.Keys(questions)) {
		err, asked := f.asked[name]
		if !asked {
			err = questions[name]()
			f.asked[name] = err
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *facts) learnChanged(ctx context.Context) error {
	c, err := f.sources.Source.Changed(ctx, f.spec)
	if err != nil && f.sources.AcceptLess != nil && f.sources.AcceptLess(err) {
		c, err = f.filesOfHead(ctx, err)
	}
	if err != nil {
		return fmt.Errorf("listing the changed files: %w", err)
	}
	f.event.Changed = match.ChangesOf(c)
	f.scope.Learn(template.Facts{Files: f.event.Changed.Files()})
	return nil
}

// ofHead lists the head commit's own files where the Git service refuses what was asked for. More
// may have changed.
func (f *facts) filesOfHead(ctx context.Context, refused error) (git.Changes, error) {
	spec := f.spec.DeepCopy()
	if spec.PullRequest == nil && spec.Before == "" { // that is what was asked for
		return git.Changes{}, refused
	}
	spec.PullRequest, spec.Before = nil, ""
	own, err := f.sources.Source.Changed(ctx, spec)
	if err != nil {
		return git.Changes{}, refused
	}
	own.Truncated = true
	return own, nil
}

func (f *facts) learnBody(ctx context.Context) error {
	data, err := f.sources.Payload(ctx)
	if err != nil {
		return fmt.Errorf("reading the payload: %w", err)
	}
	body, err := template.Body(data)
	if err != nil {
		return err
	}
	f.event.Body = body
	f.scope.Learn(template.Facts{Body: body})
	return nil
}

// learnPulls asks which pull requests hold the commit. The number of the one that was merged into
// the branch that is pushed to is a variable. A tag is of no branch: of its commit any merged one
// counts.
func (f *facts) learnPulls(ctx context.Context) error {
	pulls, err := f.sources.History.Pulls(ctx, f.spec.SHA)
	if err != nil {
		return fmt.Errorf("asking whether commit %s is in an open pull request: %w", f.spec.SHA, err)
	}
	merged := int64(0)
	branch, ofBranch := strings.CutPrefix(f.spec.BaseRef, branchPrefix)
	for _, pull := range pulls {
		if pull.Merged && merged == 0 && (!ofBranch || pull.BaseRef == branch) {
			merged = pull.Number
		}
	}
	f.pulls = pulls
	f.scope.Learn(template.Facts{MergedPull: &merged})
	return nil
}

func (f *facts) learnSecret(ctx context.Context, ref template.SecretRef) error {
	if name := f.withheld[ref]; name != "" {
		return fault.Invalidf(
			"SecretWithheld",
			"the param %s holds a secret, and this commit is of somebody who may not start anything: "+
				"a maintainer can set untrusted: true beside its secret_ref in the Repository",
			name,
		)
	}
	value, err := f.sources.Secret(ctx, ref)
	if err != nil {
		return err
	}
	f.scope.Learn(template.Facts{Secrets: map[template.SecretRef]string{ref: value}})
	return nil
}
