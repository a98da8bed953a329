// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"cmp"
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// Scopes of access tokens.
const (
	ScopeAPI            = "api"
	ScopeReadAPI        = "read_api"
	ScopeReadRepository = "read_repository"
	ScopeReadUser       = "read_user"
)

// NewToken is an access token to be made: a user's own, or, with Project or
// Group, one with a bot user of its own.
type NewToken struct {
	// User is whose personal token it is.
	User string
	// Project or Group is the full path of what a project or group token is
	// for; Level is its bot's level there (0 is Developer).
	Project, Group string
	Level          Level
	// Scopes default to api.
	Scopes []string
	// Expires is when it ends; zero is never.
	Expires time.Time
	// OAuth makes it an OAuth token, which PRIVATE-TOKEN does not take.
	OAuth bool
}

// Token is an access token and its user.
type Token struct {
	Value string
	User  User
}

type token struct {
	user    *user
	scopes  []string
	expires time.Time
	oauth   bool
	revoked bool
}

// CreateToken makes an access token.
func (g *GitLab) CreateToken(n NewToken) Token {
	defer g.lock()()
	t := &token{scopes: n.Scopes, expires: n.Expires, oauth: n.OAuth}
	if len(t.scopes) == 0 {
		t.scopes = []string{ScopeAPI}
	}
	switch {
	case n.Project != "":
		t.user = g.bot("project_"+itoa(g.mustProject(n.Project).id), n.Project, n.Level)
	case n.Group != "":
		gr := g.groups[key(n.Group)]
		if gr == nil {
			invalidUse("CreateToken: no group %q", n.Group)
		}
		t.user = g.bot("group_"+itoa(gr.id), n.Group, n.Level)
	case n.User != "":
		t.user = g.userOf(n.User)
	default:
		invalidUse("CreateToken: of no user, project or group")
	}
	value := "glpat-" + traffic.RandomHex(10)
	if n.OAuth {
		value = traffic.RandomHex(32)
	}
	g.tokens[value] = t
	return Token{value, User{t.user.id, t.user.username}}
}

// bot makes the user of a project's or group's token.
func (g *GitLab) bot(prefix, path string, l Level) *user {
	u := g.userOf(prefix + "_bot_" + traffic.RandomHex(16))
	u.bot = true
	g.setMember(path, u, cmp.Or(l, Developer))
	return u
}

// RevokeToken ends a token.
func (g *GitLab) RevokeToken(value string) {
	defer g.lock()()
	if g.tokens[value] == nil {
		invalidUse("RevokeToken: no such token")
	}
	g.tokens[value].revoked = true
}

func (t *token) has(scopes []string) bool {
	return slices.ContainsFunc(scopes, func(s string) bool { return slices.Contains(t.scopes, s) })
}
