// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"strings"
)

// Person is a role of an account in an event.
type Person string

const (
	// Author opened the pull request.
	Author Person = "author"
	// Actor caused the event: opened or reopened the pull request, pushed to its branch or set the
	// label. Users other than the author can push to the branch of a fork.
	Actor Person = "actor"
	// Commenter wrote the comment.
	Commenter Person = "commenter"
)

// Fact is a fact about a person that a rule may need.
type Fact string

const (
	// Trusted means that the Repository's settings.trusted lists the account, and the pull request
	// is the account's own.
	Trusted Fact = "trusted"
	// Listed means that the account is an active member of one of Input.Teams.
	Listed Fact = "listed"
	// Writer means that the account has write access or more to the repository.
	Writer Fact = "writer"
	// Member means that the account is a collaborator or a member of the organization or project,
	// with any role.
	Member Fact = "member"
	// Owner means that the file OWNERS of the default branch names the account.
	Owner Fact = "owner"
	// Confirmed means that the Git service itself confirms the actor. If it names another account,
	// the caller forgets what it knows about the actor, stores that this is confirmed, and decides
	// again about that account.
	Confirmed Fact = "confirmed"
)

// Question is a fact about a person that is needed.
type Question struct {
	Who  Person
	What Fact
}

// grants returns the facts of which any one gives the person the right, in the order in which they
// are looked up: first what needs no call. If a policy applies, write access and membership give no
// right. If its list is empty, nothing does. settings.trusted does not count for comments.
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

// right reports whether a person has the right to what the event requests. If that is not known,
// ask is the fact to look up next.
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

// policed reports whether the Repository's policy decides about what the person did. Its list
// ok_to_test is for commands that start runs, its list pull_request for pull requests and other
// comments. /cancel needs neither.
func (in Input) policed(who Person) bool {
	return in.Policy != nil && (who != Commenter || in.Command != Cancel)
}

// Teams returns the teams that the policy lists for what the person did: names of teams at GitHub,
// full paths of groups at GitLab.
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

// closed reports whether no user may do what the person did, because the policy's list for it is
// missing or empty.
func (in Input) closed(who Person) bool { return in.policed(who) && len(in.Teams(who)) == 0 }
