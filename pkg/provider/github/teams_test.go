// SPDX-License-Identifier: Apache-2.0

package github

import (
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// S25: only an active membership counts, and what an App may not read is retried.
func TestInTeam(t *testing.T) {
	b := newBench(t)
	b.SetTeamMember("acme", "releasers", "in", "active")
	b.SetTeamMember("acme", "releasers", "invited", "pending")
	b.SetTeamMember("acme", "releasers", "was", "active")
	b.SetTeamMember("acme", "releasers", "was", "")
	for user, want := range map[string]bool{"in": true, "invited": false, "was": false} {
		if got, err := b.client.InTeam(t.Context(), "Releasers", user); err != nil || got != want {
			t.Errorf("%s: %t, %v, want %t", user, got, err, want)
		}
	}
	b.RemoveTeam("acme", "releasers")
	if _, err := b.client.InTeam(t.Context(), "releasers", "in"); fault.Of(err).Reason != fault.ReasonTeamNotFound ||
		!strings.Contains(err.Error(), "settings.policy") {
		t.Errorf("a team that was deleted: %v, want that it is not there and what to do", err)
	}
	for name, body := range map[string]string{"nothing": `{}`, "a state of its own": `{"state":"member"}`} {
		handle := b.Inject(forge.Fault{
			Route: forge.RouteTeamMembership, Do: forge.Answer(200, http.Header{"Content-Type": {"application/json"}}, body),
		})
		if got, err := b.client.InTeam(t.Context(), "releasers", "in"); got || !fault.Is(err, fault.Transient) {
			t.Errorf("%s: %t, %v, want a wait", name, got, err)
		}
		handle.Remove()
	}
}

func TestInTeamWithoutPermission(t *testing.T) {
	b := newBench(t)
	b.SetTeamMember("acme", "releasers", "in", "active")
	b.SetOrgMember("acme", "shown", true)
	b.SetOrgMember("acme", "hidden", false)
	b.SetOrgBasePermission("acme", "none")
	for user, want := range map[string]bool{"shown": true, "hidden": true, "in": false} {
		if got, err := b.client.Member(t.Context(), user); err != nil || got != want {
			t.Errorf("%s: %t, %v, want %t", user, got, err, want)
		}
	}
	b.SetPermissions(b.installed, map[string]string{"metadata": "read", "contents": "read"})
	if got, err := b.client.InTeam(t.Context(), "releasers", "in"); got || !fault.Is(err, fault.Operator) ||
		fault.Of(err).Reason != fault.ReasonPermissionMissing {
		t.Errorf("a team: %t, %v, want a wait for the permission", got, err)
	}
	for user, want := range map[string]bool{"shown": true, "hidden": false} {
		if got, err := b.client.Member(t.Context(), user); err != nil || got != want {
			t.Errorf("%s, for who sees public members: %t, %v, want %t", user, got, err, want)
		}
	}
}

// go-github takes every status below 300 for a yes.
func TestMemberAcceptsOnlyDocumentedAnswers(t *testing.T) {
	b := newBench(t)
	b.AddUser("stranger")
	for _, route := range []string{forge.RouteCollaborator, forge.RouteMember} {
		handle := b.Inject(forge.Fault{
			Route: route, Do: forge.Answer(200, http.Header{"Content-Type": {"application/json"}}, `{}`),
		})
		if got, err := b.client.Member(t.Context(), "stranger"); got || !fault.Is(err, fault.Transient) {
			t.Errorf("%s: %t, %v, want a wait", route, got, err)
		}
		handle.Remove()
	}
	b.Inject(forge.Fault{Route: forge.RouteCollaborator, Do: forge.NotFound404()})
	b.Inject(forge.Fault{Route: forge.RouteRepo, Do: forge.NotFound404()})
	if got, err := b.client.Member(t.Context(), "stranger"); got || !fault.Is(err, fault.Operator) {
		t.Errorf("a repository that is hidden: %t, %v, want a wait", got, err)
	}
}
