// SPDX-License-Identifier: Apache-2.0

package forge

import "net/http"

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
		mistake("SetTeamMember: no state %q", state)
	}
}

// RemoveTeam deletes a team.
func (g *GitHub) RemoveTeam(org, slug string) {
	defer g.lock()()
	delete(g.accountOf(org, "Organization").teams, key(slug))
}

// team is that of the path, or the refusal. Only an App that is installed on
// the organisation and may read its members sees teams.
func (c *call) team() (*team, answer) {
	org := c.org()
	switch {
	case org == nil || c.token == nil || c.token.in.account != org:
		return nil, notFound(c.rt.doc)
	case !c.token.may(c.rt.permission, c.rt.level):
		return nil, c.notAccessible()
	}
	t := org.teams[key(c.r.PathValue("team"))]
	if t == nil {
		return nil, notFound(c.rt.doc)
	}
	return t, answer{}
}

func getTeam(c *call) answer {
	t, refused := c.team()
	if t == nil {
		return refused
	}
	return ok(object{"id": t.id, "slug": t.slug, "name": t.slug, "privacy": "closed"})
}

func getTeamMembership(c *call) answer {
	t, refused := c.team()
	if t == nil {
		return refused
	}
	user := c.r.PathValue("user")
	state := t.states[key(user)]
	if state == "" {
		return refuse(http.StatusNotFound, c.rt.doc, "Not Found")
	}
	return ok(object{"state": state, "role": "member", "url": c.g.core.BaseURL + c.r.URL.Path})
}
