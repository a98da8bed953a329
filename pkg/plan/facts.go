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

// facts has what one attempt to plan has read, for all pipelines. Each thing is read once, and only
// if a decision depends on it: a service that does not answer must not delay a pipeline that would
// be declined anyway.
type facts struct {
	sources Sources
	// spec is the event.
	spec *v1alpha1.GitEventSpec
	// scope has the values of placeholders.
	scope *template.Scope
	// event is what annotations are matched against.
	event match.Event
	// pulls are the pull requests that contain the commit.
	pulls []git.Pull
	// withheld maps each secret that the runs do not get to the name of its param.
	withheld map[template.SecretRef]string
	// asked has the result of each read: nil, or the error.
	asked map[string]error
}

// truncatedUsed reports whether a truncated list of changed files was used since the last call.
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

// CheckParams returns what is wrong with the custom params of a Repository: its events wait until
// that is corrected.
func CheckParams(repository *pacv1alpha1.Repository) error {
	_, err := template.New(template.Facts{
		Variables: resolve.Variables(&v1alpha1.GitEventSpec{}, git.Head{}, ""), Params: params(repository),
	})
	return err
}

// params returns the custom params of a Repository.
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

// share copies what other facts of the same event have read about the delivery and its commit.
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

// withFacts calls do, reads what it needs, and repeats that until it has everything, or cannot read
// it.
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

// learn reads what is needed. A failed read is not repeated in this attempt.
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

// filesOfHead lists the head commit's own files if the Git service refuses the requested list. More
// may have changed.
func (f *facts) filesOfHead(ctx context.Context, refused error) (git.Changes, error) {
	spec := f.spec.DeepCopy()
	if spec.PullRequest == nil && spec.Before == "" { // that is what was refused
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

// learnPulls reads which pull requests contain the commit. The number of the one that was merged
// into the pushed branch is a variable. A tag has no branch: any merged one counts.
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
			reasonSecretWithheld,
			"the param %s has a secret value, and this commit is by an untrusted user: "+
				"a maintainer can set untrusted: true next to its secret_ref in the Repository",
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
