// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"net/http"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// team is a group of an organisation's members.
type team struct {
	id     int64
	slug   string
	states map[string]string // active or pending, by login
}

// SetTeamMember makes a user a member of a team of an organisation, which it
// creates if need be, or invites the user (state pending). An empty state takes
// the user out; without a user only the team is there.
func (g *GitHub) SetTeamMember(org, slug, user, state string) {
	defer g.lock()()
	o := g.accountOf(org, "Organization")
	if o.teams == nil {
		o.teams = map[string]*team{}
	}
	t := o.teams[key(slug)]
	if t == nil {
		t = &team{id: g.core.NextID(), slug: slug, states: map[string]string{}}
		o.teams[key(slug)] = t
	}
	switch {
	case user == "":
	case state == "":
		delete(t.states, key(user))
	case state == "active" || state == "pending":
		g.userOf(user)
		t.states[key(user)] = state
	default:
		invalidUse("SetTeamMember: no state %q", state)
	}
}

// RemoveTeam deletes a team.
func (g *GitHub) RemoveTeam(org, slug string) {
	defer g.lock()()
	delete(g.accountOf(org, "Organization").teams, key(slug))
}

// team is that of the path. Only an App that is installed on
// the organisation and may read its members sees teams.
func (c *call) team() *team {
	org := c.org()
	switch {
	case c.token == nil || c.token.in.account != org:
		panic(traffic.Refuse(notFound(c.rt.doc)))
	case !c.token.may(c.rt.permission, c.rt.level):
		panic(traffic.Refuse(c.notAccessible()))
	}
	t := org.teams[key(c.r.PathValue("team"))]
	if t == nil {
		panic(traffic.Refuse(notFound(c.rt.doc)))
	}
	return t
}

func getTeam(c *call) answer {
	t := c.team()
	return ok(object{"id": t.id, "slug": t.slug, "name": t.slug, "privacy": "closed"})
}

func getTeamMembership(c *call) answer {
	t := c.team()
	user := c.r.PathValue("user")
	state := t.states[key(user)]
	if state == "" {
		return refuse(http.StatusNotFound, c.rt.doc, "Not Found")
	}
	return ok(object{"state": state, "role": "member", "url": c.g.core.BaseURL + c.r.URL.Path})
}
