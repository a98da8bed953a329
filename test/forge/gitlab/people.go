// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/gitdb"
)

// Level is an access level as the API counts them.
type Level int

// The access levels of GitLab.
const (
	NoAccess   Level = 0
	Guest      Level = 10
	Planner    Level = 15
	Reporter   Level = 20
	Developer  Level = 30
	Maintainer Level = 40
	Owner      Level = 50
)

// User is what a test needs to know of a user.
type User struct {
	ID       int64
	Username string
}

type user struct {
	id       int64
	username string
	bot      bool
	blocked  bool
	created  time.Time
}

type group struct {
	id      int64
	path    string // full
	parent  *group
	members map[int64]Level
	awaits  map[int64]bool
}

// userOf finds a user or creates one. The caller holds mu.
func (g *GitLab) userOf(name string) *user {
	u := g.users[key(name)]
	if u == nil {
		u = &user{id: g.core.NextID(), username: name, created: g.now()}
		g.users[key(name)] = u
	}
	return u
}

func (g *GitLab) userByID(id int64) *user {
	for _, u := range g.users {
		if u.id == id {
			return u
		}
	}
	return nil
}

// AddUser makes a user known. Users named in commits, merge requests and
// memberships are made known by these.
func (g *GitLab) AddUser(username string) User {
	defer g.lock()()
	u := g.userOf(username)
	return User{u.id, u.username}
}

// SetBlocked blocks a user or ends it. Memberships stay; tokens are refused.
func (g *GitLab) SetBlocked(username string, blocked bool) {
	defer g.lock()()
	g.userOf(username).blocked = blocked
	g.core.Notify()
}

// SetAwaiting makes a user's membership of a group one that awaits approval, or ends that. Such a
// member has its level, and may do nothing (https://docs.gitlab.com/user/free_user_limit/).
func (g *GitLab) SetAwaiting(group, username string, awaits bool) {
	defer g.lock()()
	g.groupOf(group).awaits[g.userOf(username).id] = awaits
	g.core.Notify()
}

// CreateGroup creates a group by its full path, such as org/team, and those
// above it, and returns its id.
func (g *GitLab) CreateGroup(path string) int64 {
	defer g.lock()()
	return g.groupOf(path).id
}

// groupOf finds a group or creates it with those above it. The caller holds mu.
func (g *GitLab) groupOf(path string) *group {
	gr := g.groups[key(path)]
	if gr == nil {
		gr = &group{id: g.core.NextID(), path: path, members: map[int64]Level{}, awaits: map[int64]bool{}}
		if i := strings.LastIndex(path, "/"); i > 0 {
			gr.parent = g.groupOf(path[:i])
		}
		g.groups[key(path)] = gr
	}
	return gr
}

// SetMember gives a user a level in a group or project; NoAccess ends the
// membership. Members of a group are members of all below it.
func (g *GitLab) SetMember(path, username string, l Level) {
	defer g.lock()()
	g.setMember(path, g.userOf(username), l)
	g.core.Notify()
}

func (g *GitLab) setMember(path string, u *user, l Level) {
	var members map[int64]Level
	switch {
	case g.projects[key(path)] != nil:
		members = g.projects[key(path)].members
	case g.groups[key(path)] != nil:
		members = g.groups[key(path)].members
	default:
		invalidUse("SetMember: no group or project %q", path)
	}
	if l == NoAccess {
		delete(members, u.id)
		return
	}
	members[u.id] = l
}

// levelOf is a user's highest level over the project, its groups and those above them.
func (p *project) levelOf(u *user) Level {
	if u == nil {
		return NoAccess
	}
	best := p.members[u.id]
	if p.personal == u {
		best = Owner
	}
	for gr := p.group; gr != nil; gr = gr.parent {
		best = max(best, gr.members[u.id])
	}
	return best
}

// email is the public address, which most users do not have.
func (u *user) email() string { return u.username + "@users.noreply.gitlab.example" }

// person is the user as an author of commits.
func (u *user) person() gitdb.Person { return gitdb.Person{Name: u.username, Email: u.email()} }

func (u *user) state() string {
	if u.blocked {
		return "blocked"
	}
	return "active"
}

// json is a user as it is embedded everywhere.
func (u *user) json(g *GitLab) object {
	return object{
		"id": u.id, "username": u.username, "name": u.username, "state": u.state(), "locked": false,
		"avatar_url": nil, "web_url": g.web() + "/" + u.username, "public_email": "",
	}
}

// hookJSON is a user in webhook payloads.
func (u *user) hookJSON() object {
	return object{"id": u.id, "name": u.username, "username": u.username, "avatar_url": nil, "email": "[REDACTED]"}
}
