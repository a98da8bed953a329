// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"fmt"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// Members of a group above are members; blocked users, and members of a project in the group, are
// not. A group that the token may not read is reported.
func TestInTeamOfGroup(t *testing.T) {
	b := newBench(t, forgelab.Options{})
	b.CreateGroup("acme/team/releasers")
	b.CreateGroup("secret/club")
	ids := map[string]int64{}
	for user, path := range map[string]string{"direct": "acme/team/releasers", "above": "acme", "beside": testProject,
		"blocked": "acme/team/releasers", "club": "secret/club"} {
		ids[user] = b.AddUser(user).ID
		b.SetMember(path, user, forgelab.Guest)
	}
	b.SetBlocked("blocked", true)
	for user, want := range map[string]bool{"direct": true, "above": true, "beside": false, "blocked": false} {
		for _, name := range []string{user, fmt.Sprintf("id:%d", ids[user])} {
			for _, group := range []string{"acme/team/releasers", "/acme/team/releasers/"} {
				b.SetMember("acme/team", b.token.User.Username, forgelab.Guest)
				if got, err := b.client.InTeam(t.Context(), group, name); err != nil || got != want {
					t.Errorf("%s in %s: %t, %v, want %t", name, group, got, err, want)
				}
			}
		}
	}
	for _, name := range []string{"club", fmt.Sprintf("id:%d", ids["club"])} {
		if got, err := b.client.InTeam(t.Context(), "secret/club", name); got || fault.Of(err) == nil ||
			fault.Of(err).Reason != fault.ReasonTeamNotFound {
			t.Errorf("%s in a group that is hidden: %t, %v, want that it is not there", name, got, err)
		}
	}
	for user, level := range map[string]forgelab.Level{"guest": forgelab.Guest, "none": forgelab.NoAccess} {
		b.AddUser(user)
		b.SetMember(testProject, user, level)
		if got, err := b.client.Member(t.Context(), user); err != nil || got != (level != forgelab.NoAccess) {
			t.Errorf("%s of the project: %t, %v", user, got, err)
		}
	}
}
