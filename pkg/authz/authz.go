// SPDX-License-Identifier: Apache-2.0

// Package authz decides whether an event may start something, by whoever has caused it or by an
// approval of its commit.
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

// Sources answer what a decision depends on. Each is asked only then.
type Sources struct {
	Access  Access
	History History
	// Actor returns who caused the event, from its payload. nil is nobody.
	Actor func(ctx context.Context) (string, error)
	// Recorded returns what was recorded of the event's subject, oldest first and without the event
	// itself.
	Recorded func(ctx context.Context) ([]history.Record, error)
}

// Access answers what an account may do (provider.Access has the contract).
type Access interface {
	CanWrite(ctx context.Context, user string) (bool, error)
	Member(ctx context.Context, user string) (bool, error)
	InTeam(ctx context.Context, team, user string) (bool, error)
	Owner(ctx context.Context, user string) (bool, error)
	Actor(ctx context.Context, event *v1alpha1.GitEventSpec, told string) (string, error)
}

// History answers what became of a pull request's commits (provider.History has the contract).
type History interface {
	Versions(ctx context.Context, event *v1alpha1.GitEventSpec) ([]git.Version, error)
	Differ(ctx context.Context, earlier, later string, names ...string) ([]string, error)
}

// Event is what is decided about, as far as it is known.
type Event struct {
	// Name is the GitEvent's.
	Name string
	Spec *v1alpha1.GitEventSpec
	// Command is what a comment asks for, nil for every other event.
	Command *command.Command
	// Rerun is true if a re-run button was pressed by somebody who may write.
	Rerun bool
}

// Consent is what is known of an approval.
type Consent struct {
	// Approval is why the commit may run although whoever wrote it may not start anything; nil if
	// it needs none.
	Approval *v1alpha1.Approval
	// EndsPending is true when the commit may show that it waits for approval.
	EndsPending bool
	// Heeded is true when whoever has given a command may give it, or would only need another
	// commit. Nobody else is answered (S17).
	Heeded bool
	// Untrusted is true when whoever has given a command may give it because the pull request is
	// theirs, and for no other reason.
	Untrusted bool
	// Forgotten is true when an approval of another commit would have let this one run if nothing
	// had changed since (S22).
	Forgotten bool
}

// Pending is one word for why the event waits for approval.
func (c Consent) Pending() string {
	if c.Forgotten {
		return approval.ReasonForgotten
	}
	return "PendingApproval"
}

// Decision says whether an event may start something. Why is a sentence for people if it may not.
type Decision struct {
	Allowed bool
	Why     string
	Consent
}

// Desk decides about one event, of which more may be known each time.
type Desk struct {
	repository *pacv1alpha1.Repository
	config     *config.Config
	sources    Sources
	people     *lookups
}

// New returns a desk that asks nobody yet. The Repository is the event's.
func New(repository *pacv1alpha1.Repository, c *config.Config, sources Sources) *Desk {
	d := &Desk{repository: repository, config: c, sources: sources}
	d.people = &lookups{
		Desk:    d,
		names:   map[rules.Person]string{},
		answers: map[string]bool{},
		known:   map[rules.Question]bool{},
	}
	return d
}

// appSuffix ends the logins of Apps at GitHub, except for some of its own ("Copilot"), which are
// known by what GitHub says (PullRequest.App). No account of a person can have it, at GitLab
// neither: names have no brackets. GitLab's bots are members of the project, whose role is asked
// for.
const appSuffix = "[bot]"

// matter is an event as it is known when it is decided about, and what was found out of an
// approval.
type matter struct {
	*Desk
	Event
	Consent
}

func (d *Desk) at(e Event) *matter {
	d.people.spec = e.Spec
	return &matter{Desk: d, Event: e}
}

// Commenter reports whether whoever wrote a comment may not give its command, whatever else is true
// of the event, and why not.
func (d *Desk) Commenter(ctx context.Context, e Event) (refused bool, why string, err error) {
	decision, err := d.people.answered(ctx, d.at(e).accessInput(), rules.Commenter)
	return err == nil && decision.Verdict == rules.Unapproved, decision.Why, err
}

// OnlyOwns reports whether whoever wrote a comment may give its command because the pull request is
// theirs, and for no other reason.
func (d *Desk) OnlyOwns(ctx context.Context, e Event) (bool, error) {
	in := d.at(e).accessInput()
	if !in.Own {
		return false, nil
	}
	in.Own = false
	decision, err := d.people.answered(ctx, in, rules.Commenter)
	return err == nil && decision.Verdict == rules.Unapproved, err
}

// Decide asks who may start the event. With an error only the Consent has meaning: it is what was
// found out until then.
func (d *Desk) Decide(ctx context.Context, e Event) (Decision, error) {
	m := d.at(e)
	decision, err := m.decide(ctx)
	if err != nil {
		return Decision{}, err
	}
	simple := decision.Verdict == rules.Allowed && !m.binds()
	if simple {
		m.Heeded = true
		decision = m.meant(decision)
		if m.Command != nil && m.Command.Kind == command.Cancel {
			m.Untrusted, err = d.OnlyOwns(ctx, e)
		}
	} else {
		decision, err = m.approve(ctx, decision)
	}
	allowed := decision.Verdict == rules.Allowed
	switch {
	case err != nil: // it is asked again
	case !allowed:
		m.EndsPending = false // it goes on waiting
	case simple:
		err = m.waited(ctx)
	}
	return Decision{Allowed: allowed, Why: decision.Why, Consent: m.Consent}, err
}

// Approvers says who can approve an event that waits for approval.
func (d *Desk) Approvers(e Event) string { return d.at(e).accessInput().Approvers() }

// decide asks who may start the event, and the Git service only for what the answer depends on,
// about each account once. An error is never an answer.
func (m *matter) decide(ctx context.Context) (rules.Decision, error) {
	return m.people.answered(ctx, m.accessInput(), rules.Commenter, rules.Author, rules.Actor)
}

// accessInput is what decides about the event as far as it is known without asking.
func (m *matter) accessInput() rules.Input {
	spec := m.Spec
	in := rules.Input{
		Trigger:    spec.Trigger,
		Comment:    spec.Comment != nil,
		Label:      spec.EventType == match.LabelEvent,
		Restricted: m.repository.Spec.Restricts() != "",
		SameRepository: SameRepository(
			m.Spec,
		),
		Approved: m.Approval != nil,
		Members:  m.config.MembersMayRun,
		Known:    m.people.known,
	}
	if m.Command != nil {
		in.Command = rules.Command(m.Command.Kind)
	}
	if m.Rerun && spec.PullRequest != nil { // it is as a /retest of who pressed the button, who may write (again)
		in.Comment, in.Command = true, rules.Retest
		in.Known[rules.Question{Who: rules.Commenter, What: rules.Writer}] = true
	}
	if pr := spec.PullRequest; pr != nil {
		in.App = pr.App || strings.HasSuffix(pr.Author, appSuffix)
	}
	in.Own = in.Comment && spec.PullRequest != nil && same(spec.Sender, spec.PullRequest.Author)
	if settings := m.repository.Spec.Settings; settings != nil {
		in.Policy, in.Trusts = settings.Policy, len(settings.Trusted) > 0
	}
	return in
}

// answered decides with the answers to all questions about some people: it asks if the next one is
// about somebody else.
func (l *lookups) answered(ctx context.Context, in rules.Input, about ...rules.Person) (rules.Decision, error) {
	for {
		decision := rules.Decide(in)
		if decision.Verdict != rules.Asks || !slices.Contains(about, decision.Question.Who) {
			return l.explained(decision), nil
		}
		if err := l.answer(ctx, in, decision.Question); err != nil {
			return rules.Decision{}, err
		}
	}
}

// remark reports whether the event is a comment without a command.
func (e Event) remark() bool { return e.Spec.Comment != nil && e.Command == nil }

// SameRepository reports whether a pull request's branch lives in the repository it is to be merged
// into.
func SameRepository(event *v1alpha1.GitEventSpec) bool {
	pr := event.PullRequest
	return pr != nil && pr.HeadProjectID == event.Project.ID && event.Project.ID != 0
}
