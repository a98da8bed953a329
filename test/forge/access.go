// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"cmp"
	"maps"
	"net/http"
	"slices"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// roleRank orders GitHub's repository roles.
func roleRank(role string) int {
	return slices.Index([]string{"none", "read", "triage", "write", "maintain", "admin"}, role)
}

// SetCollaborator gives a user a role on a repository: read, triage, write,
// maintain or admin; empty takes it away.
func (g *GitHub) SetCollaborator(repo, user, role string) {
	defer g.lock()()
	r := g.mustRepo(repo)
	g.userOf(user)
	if role == "" {
		delete(r.collaborators, key(user))
		return
	}
	if roleRank(role) < 1 {
		invalidUse("SetCollaborator: no role %q", role)
	}
	r.collaborators[key(user)] = role
}

// role is the highest role a user has from any source, and whether one of
// them makes the user a collaborator.
func (r *repo) role(u *account) (string, bool) {
	best, collaborates := "none", false
	raise := func(role string) {
		if roleRank(role) > roleRank(best) {
			best = role
		}
		collaborates = collaborates || roleRank(role) > 0
	}
	if r.owner == u {
		raise("admin")
	}
	if m := r.owner.members[key(u.login)]; m != nil {
		raise(r.owner.base)
		if m.owner {
			raise("admin")
		}
	}
	raise(r.collaborators[key(u.login)])
	if best == "none" && !r.private {
		return "read", false
	}
	return best, collaborates
}

// legacy maps a role to the four permissions of the permission route.
func legacy(role string) string {
	switch role {
	case "triage":
		return "read"
	case "maintain":
		return "write"
	}
	return role
}

func getPermission(c *call) answer {
	if c.token.user != nil && !c.pushes() {
		return refuse(http.StatusForbidden, c.rt.doc, "Must have push access to view collaborator permission.")
	}
	u := c.user()
	if u == nil {
		return refuse(http.StatusNotFound, c.rt.doc, c.r.PathValue("user")+" is not a user")
	}
	role, _ := c.repo.role(u)
	return ok(object{"permission": legacy(role), "role_name": role, "user": c.repo.collaboratorJSON(c.g, u)})
}

func (c *call) user() *account {
	u := c.g.accounts[key(c.r.PathValue("user"))]
	if u == nil || u.kind == "Organization" {
		return nil
	}
	return u
}

func getCollaborator(c *call) answer {
	if c.token.user != nil && !c.pushes() {
		return refuse(http.StatusForbidden, c.rt.doc, "Must have push access to view repository collaborators.")
	}
	u := c.user()
	if u == nil {
		return notFound(c.rt.doc)
	}
	if _, collaborates := c.repo.role(u); !collaborates {
		return notFound(c.rt.doc)
	}
	return noContent()
}

func (r *repo) collaboratorJSON(g *GitHub, u *account) object {
	role, _ := r.role(u)
	rank := roleRank(role)
	o := u.json(g)
	o["role_name"] = role
	o["permissions"] = object{
		"pull": rank >= 1, "triage": rank >= 2, "push": rank >= 3, "maintain": rank >= 4, "admin": rank >= 5,
	}
	return o
}

// insider reports whether the caller sees concealed members of the organisation.
func (c *call) insider(org *account) bool {
	return c.token != nil && c.token.in.account == org && c.token.may("members", "read")
}

func (c *call) org() *account {
	o := c.g.accounts[key(c.r.PathValue("org"))]
	if o == nil || o.kind != "Organization" {
		panic(traffic.Refuse(notFound(c.rt.doc)))
	}
	return o
}

func getMember(c *call) answer {
	org := c.org()
	if !c.insider(org) {
		to := c.g.core.BaseURL + "/api/v3/orgs/" + org.login + "/public_members/" + c.r.PathValue("user")
		return answer{Status: http.StatusFound}.With("Location", to)
	}
	if org.members[key(c.r.PathValue("user"))] == nil {
		return refuse(http.StatusNotFound, c.rt.doc, "User does not exist or is not a member of the organization")
	}
	return noContent()
}

func getPublicMember(c *call) answer {
	org := c.org()
	if m := org.members[key(c.r.PathValue("user"))]; m == nil || !m.public {
		return notFound(c.rt.doc)
	}
	return noContent()
}

func listMembers(c *call) answer {
	org := c.org()
	role := cmp.Or(c.r.URL.Query().Get("role"), "all")
	var list []*account
	for _, login := range slices.Sorted(maps.Keys(org.members)) {
		m := org.members[login]
		if (!m.public && !c.insider(org)) || (role == "admin" && !m.owner) || (role == "member" && m.owner) {
			continue
		}
		list = append(list, m.user)
	}
	return listed(c, list, (*account).json)
}
