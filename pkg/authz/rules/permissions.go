// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"strings"
)

// Person is one of the accounts that a decision may depend on.
type Person string

const (
	// Author opened the pull request.
	Author Person = "author"
	// Actor caused the event: opened or reopened the pull request, pushed to its branch or set the
	// label. To the branch of a fork others than the author can push.
	Actor Person = "actor"
	// Commenter wrote the comment.
	Commenter Person = "commenter"
)

// Fact is what can be asked about a person.
type Fact string

const (
	// Trusted means that the Repository's settings.trusted names the account, and the pull request
	// is its own.
	Trusted Fact = "trusted"
	// Listed means that the account is an active member of one of Input.Teams.
	Listed Fact = "listed"
	// Writer means that the account has write access or more to the repository.
	Writer Fact = "writer"
	// Member means that the account is a member of the organization, a collaborator, or a member of
	// the project, of whatever level.
	Member Fact = "member"
	// Owner means that the file OWNERS of the default branch names the account.
	Owner Fact = "owner"
	// Confirmed means that the Git service itself says that the actor has acted. If it names
	// somebody else, the caller forgets what it knows of the actor, says that this is confirmed,
	// and decides again about that account.
	Confirmed Fact = "confirmed"
)

// Question asks for a fact about a person.
type Question struct {
	Who  Person
	What Fact
}

// grants are the facts each of which gives a person the right, in the order in which they are
// asked: what costs no call first. Where a policy applies, write access and membership give none,
// and nothing does if it lists nobody. Accounts are trusted with what they do, not with what they
// say.
func (in Input) grants(who Person) []Fact {
	if in.closed(who) {
		return nil
	}
	var facts []Fact
	if in.Trusts && who != Commenter {
		facts = append(facts, Trusted)
	}
	if in.policed(who) {
		return append(facts, Listed, Owner)
	}
	facts = append(facts, Writer)
	if in.Members {
		facts = append(facts, Member)
	}
	return append(facts, Owner)
}

// right reports whether a person has the right to what the event asks for. If that is not known,
// ask is the fact to ask for next.
func (in Input) right(who Person) (has bool, ask Fact) {
	for _, fact := range in.grants(who) {
		granted, known := in.Known[Question{who, fact}]
		switch {
		case !known:
			return false, fact
		case granted:
			return true, ""
		}
	}
	return false, ""
}

// policed reports whether a list of the Repository's policy says who may do what the person did.
// The list ok_to_test is about commands that start something, the list pull_request about pull
// requests and other comments; to cancel needs neither.
func (in Input) policed(who Person) bool {
	return in.Policy != nil && (who != Commenter || in.Command != Cancel)
}

// Teams are those that the policy lists for what the person did: names of teams at GitHub, full
// paths of groups at GitLab.
func (in Input) Teams(who Person) []string {
	if !in.policed(who) {
		return nil
	}
	list := in.Policy.PullRequest
	if who == Commenter && in.Command != "" {
		list = in.Policy.OkToTest
	}
	var teams []string
	for _, team := range list {
		if team = strings.TrimSpace(team); team != "" && !slices.Contains(teams, team) {
			teams = append(teams, team)
		}
	}
	return teams
}

// closed reports whether a policy is there that lets nobody do what the person did: its list is
// missing or names no team.
func (in Input) closed(who Person) bool { return in.policed(who) && len(in.Teams(who)) == 0 }
