// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// maxNamed is how many teams Approvers lists.
const maxNamed = 10

// Approvers returns a sentence for people that says who can approve the pull request with
// /ok-to-test. It uses the same settings as Decide.
func (in Input) Approvers() string {
	in.Comment, in.Command, in.Own = true, OkToTest, false
	switch {
	case in.Restricted:
		return "It cannot be approved as long as the Repository has this policy."
	case in.closed(Commenter):
		return "It cannot be approved, because settings.policy of the Repository lists no team in ok_to_test."
	}
	var who []string
	for _, fact := range in.grants(Commenter) {
		switch fact {
		case Listed:
			who = append(who, teams(in.Teams(Commenter)))
		case Writer:
			who = append(who, "has write access to the repository")
		case Member:
			who = append(who, "is a member of the organization or project")
		case Owner:
			who = append(who, "is in the OWNERS of the default branch")
		}
	}
	return "It can be approved by a user other than its author who " + either(who) + "."
}

func teams(names []string) string {
	if len(names) == 1 {
		return "is in the team " + names[0]
	}
	return "is in one of the teams " + text.Some(names, maxNamed, ", ")
}

// either joins clauses with commas, and the last one with "or".
func either(clauses []string) string {
	last := len(clauses) - 1
	if last == 0 {
		return clauses[0]
	}
	return strings.Join(clauses[:last], ", ") + " or " + clauses[last]
}
