// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"cmp"
	"slices"
	"strings"
)

func getProject(c *call) answer { return ok(c.project.json(c.g, c.user)) }

func getUser(c *call) answer {
	o := c.user.json(c.g)
	o["bot"], o["created_at"], o["email"] = c.user.bot, stamp(c.user.created), c.user.email()
	return ok(o)
}

// member is a membership with its highest level.
type member struct {
	user   *user
	level  Level
	awaits bool
}

func (m member) json(g *GitLab) object {
	o := m.user.json(g)
	o["access_level"], o["expires_at"], o["membership_state"] = m.level, nil, "active"
	if m.awaits {
		o["membership_state"] = "awaiting"
	}
	o["created_at"] = stamp(m.user.created)
	return o
}

// leveled is a project or a group: users have levels there.
type leveled interface {
	levelOf(u *user) Level
	awaitsIn(u *user) bool
}

func getMember(c *call) answer {
	u := c.g.userByID(c.number("user"))
	if u == nil || c.project.levelOf(u) == NoAccess {
		return noRecord()
	}
	return ok(member{u, c.project.levelOf(u), c.project.awaitsIn(u)}.json(c.g))
}

func listMembers(c *call) answer { return c.members(c.project) }

// members lists direct and inherited members, each once.
func (c *call) members(of leveled) answer {
	var list []member
	for _, u := range c.g.users {
		level := of.levelOf(u)
		if level == NoAccess {
			continue
		}
		if q := c.text("query"); q != "" && !strings.Contains(key(u.username), key(q)) {
			continue
		}
		list = append(list, member{u, level, of.awaitsIn(u)})
	}
	slices.SortFunc(list, func(a, b member) int { return cmp.Compare(a.user.id, b.user.id) })
	return paged(c, list, func(m member) object { return m.json(c.g) })
}

// group is that of the path, by its id or full path; nil if the caller does not see it. Groups are
// private: the members of one, or of a project or group in it, see it.
func (c *call) group() *group {
	path := c.r.PathValue("group")
	var found *group
	for _, gr := range c.g.groups {
		if key(gr.path) == key(path) || itoa(gr.id) == path {
			found = gr
		}
	}
	if found == nil || found.levelOf(c.user) > NoAccess {
		return found
	}
	for _, p := range c.g.projects {
		if found.holds(p.group) && p.levelOf(c.user) > NoAccess {
			return found
		}
	}
	return nil
}

// holds reports whether a group is this one or in it.
func (gr *group) holds(other *group) bool {
	for ; other != nil; other = other.parent {
		if other == gr {
			return true
		}
	}
	return false
}

// levelOf is a user's highest level in the group and those above it.
func (gr *group) levelOf(u *user) Level {
	best := NoAccess
	for ; gr != nil && u != nil; gr = gr.parent {
		best = max(best, gr.members[u.id])
	}
	return best
}

// awaitsIn reports whether a user's membership of the group, or of one above, awaits approval.
func (gr *group) awaitsIn(u *user) bool {
	for ; gr != nil; gr = gr.parent {
		if gr.awaits[u.id] {
			return true
		}
	}
	return false
}

func (p *project) awaitsIn(u *user) bool { return p.group.awaitsIn(u) }

func listGroupMembers(c *call) answer {
	gr := c.group()
	if gr == nil {
		return notFound("Group")
	}
	return c.members(gr)
}
