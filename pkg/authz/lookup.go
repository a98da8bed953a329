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

// lookups answer the questions about one event, each about each account once.
type lookups struct {
	*Desk
	spec     *v1alpha1.GitEventSpec
	names    map[rules.Person]string // "" when nobody is known
	answers  map[string]bool         // by question
	known    map[rules.Question]bool // what every decision about the event knows
	problems []string                // what people have to mend before a question can be answered otherwise
}

// answer notes the answer to a question in in.Known.
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

// isTrusted reports whether the Repository trusts an account with the pull request, which has to be
// its own.
func (l *lookups) isTrusted(ctx context.Context, name string) (bool, error) {
	author, err := l.name(ctx, rules.Author)
	trusted := slices.ContainsFunc(l.repository.Spec.Settings.Trusted, func(t string) bool { return same(t, name) })
	return trusted && same(author, name), err
}

// listed reports whether an account is in one of the teams. One that does not exist has no members,
// which whoever reads the decision should know.
func (l *lookups) listed(ctx context.Context, teams []string, name string) (bool, error) {
	for _, team := range teams {
		in, err := l.once("team "+team+" "+name, func() (bool, error) { return l.sources.Access.InTeam(ctx, team, name) })
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

// granted asks for a fact that does not depend on whether the account is the author's or the
// actor's.
func (l *lookups) granted(ctx context.Context, fact rules.Fact, name string) (bool, error) {
	ask, what := l.sources.Access.CanWrite, "asking for the access of %s: %w"
	switch fact {
	case rules.Member:
		ask, what = l.sources.Access.Member, "asking whether %s is a member: %w"
	case rules.Owner:
		ask, what = l.sources.Access.Owner, "asking whether OWNERS name %s: %w"
	}
	yes, err := l.once(string(fact)+" "+name, func() (bool, error) { return ask(ctx, name) })
	if err != nil {
		return false, fmt.Errorf(what, name, err)
	}
	return yes, nil
}

// once asks a question unless it is answered.
func (l *lookups) once(question string, ask func() (bool, error)) (bool, error) {
	if known, asked := l.answers[question]; asked {
		return known, nil
	}
	yes, err := ask()
	if err == nil {
		l.answers[question] = yes
	}
	return yes, err
}

// explained adds to a decision what has to be mended, if it might be another one then.
func (l *lookups) explained(d rules.Decision) rules.Decision {
	if d.Verdict == rules.Unapproved && len(l.problems) > 0 {
		d.Why += " " + strings.Join(l.problems, " ")
	}
	return d
}

// confirm asks whether the Git service itself names the actor, who by the delivery has the right:
// of a stranger it need not be asked. If it names somebody else that is the actor from now on, of
// whom nothing is known yet.
func (l *lookups) confirm(ctx context.Context, in rules.Input, told string) error {
	actor, err := l.sources.Access.Actor(ctx, l.spec, told)
	if err != nil {
		return fmt.Errorf("asking whether %s has acted: %w", told, err)
	}
	in.Known[rules.Question{Who: rules.Actor, What: rules.Confirmed}] = actor != ""
	if actor == "" || strings.EqualFold(actor, told) {
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

// name is a person's account, "" when nobody is known.
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
	// A version before has recorded the event without it, or the definition of GitEvents is of a
	// version before.
	actor, err := l.sources.Actor(ctx)
	if err != nil {
		return "", fmt.Errorf("reading who acted: %w", err)
	}
	return actor, nil
}

// same reports whether two names are of one account. No Git service tells cases apart.
func same(a, b string) bool { return a != "" && strings.EqualFold(a, b) }
