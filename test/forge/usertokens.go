// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"cmp"
	"maps"
	"net/http"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// expiryHeader says when the token of a call expires.
const expiryHeader = "GitHub-Authentication-Token-Expiration"

// NewToken is a fine-grained personal access token to be created.
type NewToken struct {
	// User is the token's owner, who gets write access to the repository unless the user has a role
	// there already.
	User string
	// Repo is the one repository that the token covers.
	Repo string
	// Permissions default to what Plumbline asks for.
	Permissions map[string]string
	// Expires is the token's end; zero is none.
	Expires time.Time
}

// CreateToken issues a token of a user.
func (g *GitHub) CreateToken(n NewToken) (secret string) {
	defer g.lock()()
	r, user := g.mustRepo(n.Repo), g.userOf(cmp.Or(n.User, "ci-bot"))
	if role, _ := r.role(user); roleRank(role) < roleRank("write") && r.collaborators[key(user.login)] == "" {
		r.collaborators[key(user.login)] = "write"
	}
	permissions := maps.Clone(n.Permissions)
	if permissions == nil {
		permissions = map[string]string{
			"statuses": "write", "contents": "read", "pull_requests": "write", "issues": "read", "members": "read",
		}
	}
	permissions["metadata"] = "read"
	t := &token{user: user, permissions: permissions, expires: n.Expires, in: &installation{
		id: g.core.NextID(), account: r.owner, repos: map[int64]bool{r.id: true}, permissions: permissions,
	}}
	secret = "github_pat_" + traffic.RandomHex(18)
	g.tokens[secret] = t
	return secret
}

// ExpireToken changes when a user's token expires.
func (g *GitHub) ExpireToken(secret string, at time.Time) {
	defer g.lock()()
	t := g.tokens[secret]
	if t == nil || t.user == nil {
		invalidUse("ExpireToken: no token of a user")
	}
	t.expires = at
}

// AddHook adds a repository's own webhook with a secret. Deliveries for which AppID is OfHook are
// its, and those of a repository that no App is installed on.
func (g *GitHub) AddHook(repo, secret string) (id int64) {
	defer g.lock()()
	r := g.mustRepo(repo)
	id = g.core.NextID()
	r.hook = &installation{app: &app{App: App{WebhookSecret: secret, HookID: id}}}
	return id
}

// OfHook is the AppID of deliveries of a repository's own webhook: no App has it.
const OfHook = -1

// getUser answers who the token is of.
func getUser(c *call) answer {
	switch {
	case c.token == nil:
		return refuse(http.StatusUnauthorized, c.rt.doc, "Requires authentication")
	case c.token.user == nil:
		return c.notAccessible()
	}
	return ok(c.token.user.json(c.g))
}

// pushes reports whether the caller is a user with write access, who may do what the permissions of
// the token allow.
func (c *call) pushes() bool {
	if c.token == nil || c.token.user == nil {
		return false
	}
	role, _ := c.repo.role(c.token.user)
	return roleRank(role) >= roleRank("write")
}

// withExpiry adds the header that says when the caller's token expires.
func (c *call) withExpiry(a answer) answer {
	if c.token == nil || c.token.user == nil || c.token.expires.IsZero() {
		return a
	}
	return a.OrHeader(expiryHeader, c.token.expires.UTC().Format("2006-01-02 15:04:05 MST"))
}

// kindOf is how GitHub's refusals name the kind of a token.
func (t *token) kindOf() string {
	if t != nil && t.user != nil {
		return "personal access token"
	}
	return "integration"
}

// isHook reports whether an App stands for a repository's own webhook.
func isHook(a *app) bool { return a.ID == 0 }
