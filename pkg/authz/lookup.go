// SPDX-License-Identifier: Apache-2.0

package authz

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/authz/rules"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// lookups answers the rules' questions about one event, each once for each account.
type lookups struct {
	*Decider
	spec     *v1alpha1.GitEventSpec
	names    map[rules.Person]string // "" if the account is not known
	answers  map[string]bool         // by question
	known    map[rules.Question]bool // the answers that the rules have so far
	problems []string                // what users have to fix, because it may change an answer
}

// answer stores the answer to a question in in.Known.
func (l *lookups) answer(ctx context.Context, in rules.Input, q rules.Question) error {
	name, err := l.name(ctx, q.Who)
	if err != nil {
		return err
	}
	switch {
	case q.What == rules.Confirmed:
		return l.confirm(ctx, in, name)
	case name == "":
		in.Known[q] = false
	case q.What == rules.Trusted:
		in.Known[q], err = l.isTrusted(ctx, name)
	case q.What == rules.Listed:
		in.Known[q], err = l.listed(ctx, in.Teams(q.Who), name)
	default:
		in.Known[q], err = l.granted(ctx, q.What, name)
	}
	return err
}

// isTrusted reports whether the Repository trusts the account with the pull request, which must be
// the account's own.
func (l *lookups) isTrusted(ctx context.Context, name string) (bool, error) {
	author, err := l.name(ctx, rules.Author)
	trusted := slices.ContainsFunc(l.repository.Spec.Settings.Trusted, func(t string) bool { return same(t, name) })
	return trusted && same(author, name), err
}

// listed reports whether the account is in one of the teams. A team that does not exist has no
// members, and is added to the problems.
func (l *lookups) listed(ctx context.Context, teams []string, name string) (bool, error) {
	for _, team := range teams {
		in, err := l.cached("team "+team+" "+name, func() (bool, error) { return l.sources.Access.InTeam(ctx, team, name) })
		switch {
		case fault.Is(err, fault.Invalid):
			if problem := fault.Of(err).Message + "."; !slices.Contains(l.problems, problem) {
				l.problems = append(l.problems, problem)
			}
		case err != nil:
			return false, fmt.Errorf("asking whether %s is in %s, which settings.policy lists: %w", name, team, err)
		case in:
			return true, nil
		}
	}
	return false, nil
}

// granted reads a fact that does not depend on the account's role in the event.
func (l *lookups) granted(ctx context.Context, fact rules.Fact, name string) (bool, error) {
	ask, what := l.sources.Access.CanWrite, "asking for the access of %s: %w"
	switch fact {
	case rules.Member:
		ask, what = l.sources.Access.Member, "asking whether %s is a member: %w"
	case rules.Owner:
		ask, what = l.sources.Access.Owner, "asking whether OWNERS name %s: %w"
	}
	yes, err := l.cached(string(fact)+" "+name, func() (bool, error) { return ask(ctx, name) })
	if err != nil {
		return false, fmt.Errorf(what, name, err)
	}
	return yes, nil
}

// cached answers a question from memory, or asks.
func (l *lookups) cached(question string, ask func() (bool, error)) (bool, error) {
	if known, asked := l.answers[question]; asked {
		return known, nil
	}
	yes, err := ask()
	if err == nil {
		l.answers[question] = yes
	}
	return yes, err
}

// withProblems adds the problems to a denial that they may have caused.
func (l *lookups) withProblems(d rules.Result) rules.Result {
	if d.Verdict == rules.Unapproved && len(l.problems) > 0 {
		d.Why += " " + strings.Join(l.problems, " ")
	}
	return d
}

// confirm asks whether the Git service itself names the actor. It is asked only about an actor who
// has the right according to the delivery. If the service names another account, that is the actor
// from now on, and nothing is known about it yet.
func (l *lookups) confirm(ctx context.Context, in rules.Input, reported string) error {
	actor, err := l.sources.Access.Actor(ctx, l.spec, reported)
	if err != nil {
		return fmt.Errorf("asking whether %s has acted: %w", reported, err)
	}
	in.Known[rules.Question{Who: rules.Actor, What: rules.Confirmed}] = actor != ""
	if actor == "" || strings.EqualFold(actor, reported) {
		return nil
	}
	l.names[rules.Actor] = actor
	for q := range in.Known {
		if q.Who == rules.Actor && q.What != rules.Confirmed {
			delete(in.Known, q)
		}
	}
	return nil
}

// name returns a person's account, "" if it is not known.
func (l *lookups) name(ctx context.Context, who rules.Person) (string, error) {
	if name, known := l.names[who]; known {
		return name, nil
	}
	name, err := l.account(ctx, who)
	if err == nil {
		l.names[who] = name
	}
	return name, err
}

func (l *lookups) account(ctx context.Context, who rules.Person) (string, error) {
	switch {
	case who == rules.Commenter:
		return l.spec.Sender, nil
	case l.spec.PullRequest == nil:
		return "", nil
	case who == rules.Author:
		return l.spec.PullRequest.Author, nil
	case l.spec.Actor != "" || l.sources.Actor == nil:
		return l.spec.Actor, nil
	}
	// An earlier version has recorded the event without it, or the CRD of GitEvents is of an
	// earlier version.
	actor, err := l.sources.Actor(ctx)
	if err != nil {
		return "", fmt.Errorf("reading who acted: %w", err)
	}
	return actor, nil
}

// same reports whether two names are the same account. No Git service distinguishes upper and lower
// case.
func same(a, b string) bool { return a != "" && strings.EqualFold(a, b) }
