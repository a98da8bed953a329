// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"strings"
	"testing"
)

// Approvers uses the same settings as the decision about an approving comment.
func TestApproversMatchDecide(t *testing.T) {
	t.Parallel()
	const only = "It can be approved by a user other than its author who "
	var many []string
	for i := range 12 {
		many = append(many, fmt.Sprint("team-", i))
	}
	for name, c := range map[string]struct {
		in   Input
		want string
	}{
		"by default": {
			fork(), only + "has write access to the repository or is in the OWNERS of the default branch.",
		},
		"of the repository": {
			here(), only + "has write access to the repository or is in the OWNERS of the default branch.",
		},
		"where members may": {fork().members(), only + "has write access to the repository, is a member of the organization or project or is in the OWNERS of the default branch."},
		"trust is no approval": {
			fork().trusts(), only + "has write access to the repository or is in the OWNERS of the default branch.",
		},
		"a team": {
			fork().policy("pull", "maintainers"), only + "is in the team maintainers or is in the OWNERS of the default branch.",
		},
		"teams, not members": {fork().members().policy("pull", "a, ,b"),
			only + "is in one of the teams a, b or is in the OWNERS of the default branch."},
		"many teams": {fork().policy("", strings.Join(many, ",")), only + "is in one of the teams " +
			strings.Join(many[:10], ", ") + " and 2 more or is in the OWNERS of the default branch."},
		"no team": {fork().policy("pull", ""),
			"It cannot be approved, because settings.policy of the Repository lists no team in ok_to_test."},
		"an unknown policy": {fork().restricted(), "It cannot be approved as long as the Repository has this policy."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.in.Approvers(); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

// A fact is in the sentence if and only if it alone lets a user's comment approve.
func TestApproversListEveryGrantingFact(t *testing.T) {
	t.Parallel()
	words := map[Fact]string{Listed: "team", Writer: "write access", Member: "member of", Owner: "OWNERS"}
	for _, in := range []Input{fork(), here(), fork().members(), fork().trusts(), fork().policy("a", "b"),
		fork().policy("a", ""), fork().restricted(), fork().members().policy("", "b")} {
		for _, fact := range []Fact{Trusted, Listed, Writer, Member, Owner} {
			approves, _ := row{in: in.comment(OkToTest).approved(), facts: []string{"commenter " + string(fact)}}.ends(rules())
			named := words[fact] != "" && !strings.HasPrefix(in.Approvers(), "It cannot") &&
				strings.Contains(in.Approvers(), words[fact])
			if named != (approves.Verdict == Allowed) {
				t.Errorf("%+v: %s approves: %v, and it says %q", in, fact, approves.Verdict, in.Approvers())
			}
		}
	}
}
