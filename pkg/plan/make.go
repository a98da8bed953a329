// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"slices"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resolve"
	"github.com/plumbline-ci/plumbline/pkg/plan/references"
	"github.com/plumbline-ci/plumbline/pkg/plan/rerun"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// Make plans an event. The Plan is never nil. With an error it has only the Spec, as far as it was
// completed, and the HeadSHA if the event may start runs. Make may be called again until its result
// is stored: the same answers give the same plan.
func Make(ctx context.Context, in Input, sources Sources) (*Plan, error) {
	p := &planner{Input: in, Sources: sources, spec: in.Event.Spec.DeepCopy()}
	if in.Earlier != nil {
		p.Approval, p.EndsPending, p.priority.value = in.Earlier.Approval, in.Earlier.EndsPending, in.Earlier.Priority
	}
	p.authz = authz.New(in.Repository, in.Config, authz.Sources{
		Access: sources.Access, History: sources.History, Actor: sources.Actor, Recorded: p.recorded,
	})
	made, err := p.make(ctx)
	if made == nil {
		made = &Plan{}
	}
	made.Answer = Answer{Command: p.repliedCommand(), Untrusted: p.Untrusted}
	made.Spec, made.Approval, made.Priority = p.spec, p.Approval, p.priority.value
	made.EndsPending = p.Approval != nil || p.EndsPending
	made.Own = authz.Own(p.spec, p.Approval)
	return made, err
}

// planner makes one plan.
type planner struct {
	Input
	Sources
	// spec is the event's spec with everything that was found out.
	spec *v1alpha1.GitEventSpec
	// definitions is the size of the definitions in bytes.
	definitions int
	request
	authz *authz.Decider
	authz.Basis
	// past has the recorded events with the same subject, nil until they were read.
	past *[]history.Record
	// rerun is what a re-run request is about, nil for other events.
	rerun    *rerun.Target
	priority priority
}

func (p *planner) make(ctx context.Context) (*Plan, error) {
	if end, err := p.readComment(ctx); end != nil || err != nil {
		return end, err
	}
	for _, learn := range []func(context.Context) error{p.findRerun, p.complete, p.checkServed} {
		if err := learn(ctx); err != nil {
			return nil, err
		}
	}
	if end, err := p.endWithoutRuns(ctx); end != nil || err != nil {
		return end, err
	}
	head, err := p.Source.Head(ctx, p.spec)
	if err != nil {
		return &Plan{Commits: Commits{HeadSHA: p.spec.SHA}}, fmt.Errorf("reading commit %s: %w", p.spec.SHA, err)
	}
	if p.skips(head) {
		return p.end(v1alpha1.DispositionSkipped, head.SHA, reasonSkipCI,
			"the message of the commit has a skip CI command"), nil
	}
	made, err := p.define(ctx, head)
	if err != nil {
		return &Plan{Commits: Commits{HeadSHA: head.SHA}}, err
	}
	return made, nil
}

// skips reports whether the commit skips CI, unless a user or a merge queue requests its checks.
func (p *planner) skips(head git.Head) bool {
	return head.Commit.SkipCI && p.spec.Comment == nil && !p.onRequest() && p.spec.Trigger != v1alpha1.TriggerMergeGroup
}

// endWithoutRuns returns the plan of an event that may start no runs, nil for others: a pull
// request was closed, the event is not allowed, or a command cannot be carried out. What an earlier
// attempt has decided does not change.
func (p *planner) endWithoutRuns(ctx context.Context) (*Plan, error) {
	if p.spec.Closes() {
		return p.cancelAsClosed(), nil
	}
	if p.Earlier != nil {
		return nil, nil
	}
	if end, err := p.authorize(ctx); end != nil || err != nil {
		return end, err
	}
	end, err := p.endCommand(ctx)
	if end != nil {
		p.Approval, p.EndsPending = nil, false
	}
	return end, err
}

// onRequest reports whether a user requests runs, with a command, a re-run or a request to
// /incoming, in addition to the Git service's own events.
func (p *planner) onRequest() bool {
	return p.command != nil || p.rerun != nil || p.spec.Incoming != nil
}

// complete completes the event from the Git service. If the service does not sign its deliveries,
// it also checks that the event is true. The head of a comment's pull request may have moved since
// the plan was started; the plan's commit counts.
func (p *planner) complete(ctx context.Context) error {
	if p.History == nil && p.spec.Comment == nil {
		return nil
	}
	spec, err := p.History.Complete(ctx, p.spec)
	if err != nil {
		return ignoredError(err)
	}
	comment, sha := p.spec.Comment, p.spec.SHA
	p.spec = spec.DeepCopy()
	switch {
	case p.rerun != nil:
		return p.checkRerunAllowed(sha)
	case p.spec.Incoming != nil:
		return p.setCommit(ctx)
	case comment == nil:
		return nil
	}
	if p.Earlier != nil {
		p.spec.SHA = p.Earlier.HeadSHA
	}
	// A service that returns the comment must return the delivery's text: a comment that was edited
	// since may not start what it did not ask for.
	if now := withLineFeeds(p.spec.Comment.Body); now != "" && now != comment.Body {
		return ignoredError(fault.Ignoredf(reasonCommentEdited, "the comment was edited after its delivery"))
	}
	p.spec.Comment.Body = comment.Body
	return p.checkIsHead(sha)
}

// checkServed checks whether the event's repository may be served in its Repository's namespace.
func (p *planner) checkServed(ctx context.Context) error {
	if p.Serves == nil {
		return nil
	}
	return ignoredError(p.Serves(ctx, p.spec))
}

// end returns the plan of an event that starts nothing, whatever is defined.
func (p *planner) end(disposition v1alpha1.Disposition, sha, reason, message string) *Plan {
	return &Plan{
		Ending:  Ending{Disposition: disposition, Reason: reason, Message: message},
		Commits: Commits{HeadSHA: sha},
		Runs:    p.earlierRuns(),
	}
}

func (p *planner) earlierRuns() []Run {
	if p.Earlier == nil {
		return nil
	}
	return slices.Clone(p.Earlier.Runs)
}

// define reads the definitions at one commit and chooses from them.
func (p *planner) define(ctx context.Context, head git.Head) (*Plan, error) {
	made, err := p.commits(ctx, head)
	if err != nil {
		return nil, err
	}
	files, set, err := p.load(ctx, made.DefinitionSHA)
	if fault.Is(err, fault.Invalid) && p.Earlier == nil {
		return p.refuse(made, fault.Of(err)), nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s at %s: %w", Definitions, made.DefinitionSHA, err)
	}
	known, err := p.newFacts(head)
	if err != nil {
		return nil, err
	}
	d := &draft{planner: p, head: head, facts: known, runs: runs{all: p.earlierRuns()}}
	d.set = set.Paced(d.pauseForWork)
	if p.Config.Remote.Fetch {
		d.references = references.New(references.Options{
			Files:     p.Source,
			Addresses: p.addresses(),
			Web:       p.Web,
			SHA:       made.DefinitionSHA,
			Remote:    p.Config.Remote,
			Service:   p.Config.GitHubURL,
			Missing:   p.Missing,
			Known:     files,
		})
	}
	return made, d.choose(ctx, made)
}

// addresses returns what reads web addresses for this event.
func (p *planner) addresses() references.Addresses {
	if p.OwnAddresses != nil && authz.Own(p.spec, p.Approval) {
		return p.OwnAddresses
	}
	return p.Addresses
}

// commits returns a plan with the commits that it is made at.
func (p *planner) commits(ctx context.Context, head git.Head) (*Plan, error) {
	if p.Earlier != nil {
		return &Plan{Commits: p.Earlier.Commits}, nil
	}
	from, err := p.definitionCommit(ctx, head)
	if err != nil {
		return nil, err
	}
	return &Plan{Commits: Commits{HeadSHA: head.SHA, DefinitionSHA: from}}, nil
}

// The values of settings.pipelinerun_provenance.
const (
	defaultBranch = "default_branch"
	ofCommit      = "source"
)

// definitionCommit returns the one commit of the target repository at which definitions, and files
// that they refer to, are read. The default branch is read once, because it may move while the plan
// is made.
func (p *planner) definitionCommit(ctx context.Context, head git.Head) (string, error) {
	if !p.fromDefaultBranch() {
		return p.ownDefinitionCommit(head.SHA), nil
	}
	sha, err := p.Source.DefaultBranch(ctx)
	if err != nil {
		return "", fmt.Errorf("taking the definitions from the default branch: %w", err)
	}
	return sha, nil
}

// load reads the definitions. Those of an event that is already planned were checked against the
// limits before.
func (p *planner) load(ctx context.Context, sha string) ([]git.File, *resolve.Set, error) {
	files, err := p.Source.Files(ctx, sha, Definitions)
	if err != nil {
		return nil, nil, err
	}
	for _, file := range files {
		p.definitions += len(file.Data)
	}
	if err := p.reserveMemory(0); err != nil {
		return nil, nil, err
	}
	set := p.Sets.Load(p.Repository.Namespace, files)
	if p.Earlier != nil {
		return files, set, nil
	}
	return files, set, set.Bounded()
}

// reserveMemory reserves memory for the definitions and for manifests of this size.
func (p *planner) reserveMemory(manifests int) error {
	if p.Reserve == nil {
		return nil
	}
	return p.Reserve(p.definitions, manifests)
}

// refuse reports that the whole directory cannot be used, in the check of one run that is never
// created.
func (p *planner) refuse(made *Plan, why *fault.Error) *Plan {
	made.Reason, made.Message = why.Reason, why.Message
	if p.isRemark() { // the pull request's own event reports it, once
		made.Disposition = v1alpha1.DispositionIgnored
		return made
	}
	made.Disposition, made.Runs = v1alpha1.DispositionRuns, []Run{p.directoryRefused(why)}
	return made
}
