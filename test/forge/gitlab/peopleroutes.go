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

// listUsers finds users by their exact name, by a part of it, or all.
func listUsers(c *call) answer {
	var list []*user
	for _, u := range c.g.users {
		if name := c.text("username"); name != "" && key(name) != key(u.username) {
			continue
		}
		if part := c.text("search"); part != "" && !strings.Contains(key(u.username), key(part)) {
			continue
		}
		list = append(list, u)
	}
	slices.SortFunc(list, func(a, b *user) int { return cmp.Compare(b.id, a.id) })
	return paged(c, list, func(u *user) object { return u.json(c.g) })
}

func getUserByID(c *call) answer {
	u := c.g.userByID(c.number("user"))
	if u == nil {
		return notFound("User")
	}
	o := u.json(c.g)
	o["bot"], o["created_at"] = u.bot, stamp(u.created)
	return ok(o)
}

// member is a membership with its highest level.
type member struct {
	user  *user
	level Level
}

func (m member) json(g *GitLab) object {
	o := m.user.json(g)
	o["access_level"], o["expires_at"], o["membership_state"] = m.level, nil, "active"
	o["created_at"] = stamp(m.user.created)
	return o
}

func getMember(c *call) answer {
	u := c.g.userByID(c.number("user"))
	if u == nil || c.project.levelOf(u) == NoAccess {
		return noRecord()
	}
	return ok(member{u, c.project.levelOf(u)}.json(c.g))
}

// listMembers lists direct and inherited members, each once.
func listMembers(c *call) answer {
	var list []member
	for _, u := range c.g.users {
		level := c.project.levelOf(u)
		if level == NoAccess {
			continue
		}
		if q := c.text("query"); q != "" && !strings.Contains(key(u.username), key(q)) {
			continue
		}
		list = append(list, member{u, level})
	}
	slices.SortFunc(list, func(a, b member) int { return cmp.Compare(a.user.id, b.user.id) })
	return paged(c, list, func(m member) object { return m.json(c.g) })
}
