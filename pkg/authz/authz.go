// SPDX-License-Identifier: Apache-2.0

// Package authz decides who may run: whether an event may start runs, because of the users who
// caused it or because its commit is approved.
//
//   - rules/ has the decision itself: one ordered list of rules over values (rules.go).
//   - lookup.go reads the facts that the rules ask for from the Git service and OWNERS.
//   - approve.go decides whether a comment approves a commit; remember.go whether an earlier
//     approval counts for a later commit. approval/ has what both are decided by.
//   - owners/ parses OWNERS files; claim/ decides which namespace may serve a URL.
//
// Decider.Decide in this file is the entry point; pkg/plan calls it.
package authz

import (
	"context"
	"slices"
	"strings"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz/approval"
	"github.com/plumbline-ci/plumbline/pkg/authz/rules"
	"github.com/plumbline-ci/plumbline/pkg/config"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/command"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// Sources read what a decision depends on. Each is called only if the decision depends on it.
type Sources struct {
	Access  Access
	History History
	// Actor returns the user who caused the event, from its payload; nil if it cannot be read.
	Actor func(ctx context.Context) (string, error)
	// Recorded returns the recorded events with the same subject, oldest first, without the event
	// itself.
	Recorded func(ctx context.Context) ([]history.Record, error)
}

// Access reads what an account may do (provider.Access has the contract). Owner reports whether the
// OWNERS of the default branch name the user.
type Access interface {
	CanWrite(ctx context.Context, user string) (bool, error)
	Member(ctx context.Context, user string) (bool, error)
	InTeam(ctx context.Context, team, user string) (bool, error)
	Owner(ctx context.Context, user string) (bool, error)
	Actor(ctx context.Context, event *v1alpha1.GitEventSpec, reported string) (string, error)
}

// History reads the commits of a pull request (provider.History has the contract).
type History interface {
	Versions(ctx context.Context, event *v1alpha1.GitEventSpec) ([]git.Version, error)
	Differ(ctx context.Context, earlier, later string, names ...string) ([]string, error)
}

// Event is the event to decide about, as far as it is known.
type Event struct {
	// Name is the GitEvent's.
	Name string
	Spec *v1alpha1.GitEventSpec
	// Command is the command of a comment, nil for every other event.
	Command *command.Command
	// Rerun is true if a user with write access requested a re-run.
	Rerun bool
}

// Basis is what a decision is based on.
type Basis struct {
	// Approval is set if the commit may run although its author may not start runs.
	Approval *v1alpha1.Approval
	// EndsPending is true when the commit may have a check that waits for approval.
	EndsPending bool
	// MayCommand is true when the user may give the command, or could if it named another commit.
	// Only these users get a reply (S17).
	MayCommand bool
	// Untrusted is true when the user may give the command only because it is the user's own pull
	// request.
	Untrusted bool
	// Forgotten is true when an approval of another commit would count for this one, had nothing
	// changed since (S22).
	Forgotten bool
}

// PendingReason returns one word for why the event waits for approval.
func (c Basis) PendingReason() string {
	if c.Forgotten {
		return approval.ReasonForgotten
	}
	return "PendingApproval"
}

// Decision says whether an event may start runs. If it may not, Why is a sentence for people.
type Decision struct {
	Allowed bool
	Why     string
	Basis
}

// Decider decides about one event. It may be asked again when more is known, and caches what it has
// read.
type Decider struct {
	repository *pacv1alpha1.Repository
	config     *config.Config
	sources    Sources
	lookups    *lookups
}

// New returns a Decider that has read nothing yet. The Repository is the event's.
func New(repository *pacv1alpha1.Repository, c *config.Config, sources Sources) *Decider {
	d := &Decider{repository: repository, config: c, sources: sources}
	d.lookups = &lookups{
		Decider: d,
		names:   map[rules.Person]string{},
		answers: map[string]bool{},
		known:   map[rules.Question]bool{},
	}
	return d
}

// appSuffix is the end of the login of a GitHub App. Some of GitHub's own Apps ("Copilot") do not
// have it; GitHub marks them (PullRequest.App). No user can have such a login, nor at GitLab, where
// names have no brackets. GitLab's bots are members of the project, so their role is read.
const appSuffix = "[bot]"

// evaluation is one decision about an event: the event as it is known now, and what was found out.
type evaluation struct {
	*Decider
	Event
	Basis
}

func (d *Decider) evaluation(e Event) *evaluation {
	d.lookups.spec = e.Spec
	return &evaluation{Decider: d, Event: e}
}

// RefusesCommenter reports whether the author of a comment may not give its command, whatever else
// is true of the event, and why not.
func (d *Decider) RefusesCommenter(ctx context.Context, e Event) (refused bool, why string, err error) {
	decision, err := d.lookups.decide(ctx, d.evaluation(e).accessInput(), rules.Commenter)
	return err == nil && decision.Verdict == rules.Unapproved, decision.Why, err
}

// OnlyAsAuthor reports whether the author of a comment may give its command only because it is the
// author's own pull request.
func (d *Decider) OnlyAsAuthor(ctx context.Context, e Event) (bool, error) {
	in := d.evaluation(e).accessInput()
	if !in.Own {
		return false, nil
	}
	in.Own = false
	decision, err := d.lookups.decide(ctx, in, rules.Commenter)
	return err == nil && decision.Verdict == rules.Unapproved, err
}

// Decide decides whether the event may start runs. With an error, only the Basis is valid: what was
// found out before the error.
func (d *Decider) Decide(ctx context.Context, e Event) (Decision, error) {
	ev := d.evaluation(e)
	decision, err := ev.decide(ctx)
	if err != nil {
		return Decision{}, err
	}
	simple := decision.Verdict == rules.Allowed && !ev.dependsOnApproval()
	if simple {
		ev.MayCommand = true
		decision = ev.unlessMisnamed(decision)
		if ev.Command != nil && ev.Command.Kind == command.Cancel {
			ev.Untrusted, err = d.OnlyAsAuthor(ctx, e)
		}
	} else {
		decision, err = ev.approve(ctx, decision)
	}
	allowed := decision.Verdict == rules.Allowed
	switch {
	case err != nil: // the caller retries
	case !allowed:
		ev.EndsPending = false // the check stays pending
	case simple:
		err = ev.noteWait(ctx)
	}
	return Decision{Allowed: allowed, Why: decision.Why, Basis: ev.Basis}, err
}

// Approvers returns a sentence that says who can approve an event that waits for approval.
func (d *Decider) Approvers(e Event) string { return d.evaluation(e).accessInput().Approvers() }

// decide applies the rules. It reads from the Git service only what the result depends on, once for
// each account. An error never counts as an answer.
func (ev *evaluation) decide(ctx context.Context) (rules.Result, error) {
	return ev.lookups.decide(ctx, ev.accessInput(), rules.Commenter, rules.Author, rules.Actor)
}

// accessInput returns what the rules need of the event without reading anything.
func (ev *evaluation) accessInput() rules.Input {
	spec := ev.Spec
	in := rules.Input{
		Trigger:        spec.Trigger,
		Comment:        spec.Comment != nil,
		Label:          spec.EventType == match.LabelEvent,
		Restricted:     ev.repository.Spec.Restricts() != "",
		SameRepository: SameRepository(spec),
		Approved:       ev.Approval != nil,
		Members:        ev.config.MembersMayRun,
		Known:          ev.lookups.known,
	}
	if ev.Command != nil {
		in.Command = rules.Command(ev.Command.Kind)
	}
	if ev.Rerun && spec.PullRequest != nil { // as a /retest by the user, who has write access (again)
		in.Comment, in.Command = true, rules.Retest
		in.Known[rules.Question{Who: rules.Commenter, What: rules.Writer}] = true
	}
	if pr := spec.PullRequest; pr != nil {
		in.App = pr.App || strings.HasSuffix(pr.Author, appSuffix)
	}
	in.Own = in.Comment && spec.PullRequest != nil && same(spec.Sender, spec.PullRequest.Author)
	if settings := ev.repository.Spec.Settings; settings != nil {
		in.Policy, in.Trusts = settings.Policy, len(settings.Trusted) > 0
	}
	return in
}

// decide applies the rules and answers their questions about these people. A question about another
// person ends it.
func (l *lookups) decide(ctx context.Context, in rules.Input, about ...rules.Person) (rules.Result, error) {
	for {
		decision := rules.Decide(in)
		if decision.Verdict != rules.Asks || !slices.Contains(about, decision.Question.Who) {
			return l.withProblems(decision), nil
		}
		if err := l.answer(ctx, in, decision.Question); err != nil {
			return rules.Result{}, err
		}
	}
}

// isRemark reports whether the event is a comment without a command.
func (e Event) isRemark() bool { return e.Spec.Comment != nil && e.Command == nil }

// SameRepository reports whether a pull request comes from a branch of its own target repository.
func SameRepository(event *v1alpha1.GitEventSpec) bool {
	pr := event.PullRequest
	return pr != nil && pr.HeadProjectID == event.Project.ID && event.Project.ID != 0
}
