// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// token is an installation access token, or one of a user. A user's has an installation of its own
// that is none of an App.
type token struct {
	in          *installation
	user        *account       // nil for an installation's
	repos       map[int64]bool // nil: all of the installation's
	permissions map[string]string
	expires     time.Time // zero is never
	suspended   bool      // since it was minted
}

type usage struct {
	used  int
	reset time.Time
}

// authenticate finds the caller. It refuses wrong credentials; a call without credentials goes on
// without a user where the route allows it.
func (c *call) authenticate() {
	scheme, cred, _ := strings.Cut(c.r.Header.Get("Authorization"), " ")
	cred = strings.TrimSpace(cred)
	if c.rt.audience == appJWT {
		if !strings.EqualFold(scheme, "Bearer") {
			panic(traffic.Refuse(undecodable()))
		}
		c.app = c.g.verifyJWT(cred)
		return
	}
	if c.rt.audience == gitClient {
		c.authenticateGit()
		return
	}
	if cred == "" {
		return
	}
	if !strings.EqualFold(scheme, "Bearer") && !strings.EqualFold(scheme, "token") {
		panic(traffic.Refuse(refuse(http.StatusUnauthorized, docs, "Bad credentials")))
	}
	t := c.g.valid(cred)
	if t == nil {
		panic(traffic.Refuse(refuse(http.StatusUnauthorized, docs, "Bad credentials")))
	}
	c.token, c.app = t, t.in.app
	if t.in.suspended || t.suspended {
		panic(traffic.Refuse(refuse(http.StatusForbidden, docs, "This installation has been suspended")))
	}
}

// valid returns the token of a secret, nil if it is unknown, expired or of a removed installation.
func (g *GitHub) valid(secret string) *token {
	t := g.tokens[secret]
	expired := t != nil && !t.expires.IsZero() && !g.opts.Now().Before(t.expires)
	if t == nil || expired || t.user == nil && g.installs[t.in.id] == nil {
		return nil
	}
	return t
}

// authorize decides whether the caller may use the route on the repository the path names.
func (c *call) authorize() {
	if c.rt.audience == gitClient {
		c.authorizeGit()
		return
	}
	if c.rt.audience != repoReader && c.rt.audience != repoMember {
		return
	}
	r := c.g.repos[key(c.r.PathValue("owner")+"/"+c.r.PathValue("repo"))]
	if r == nil {
		panic(traffic.Refuse(notFound(c.rt.doc)))
	}
	c.repo = r
	inScope := c.token != nil && c.token.covers(r)
	switch {
	case !inScope && r.private:
		panic(traffic.Refuse(notFound(c.rt.doc)))
	case c.rt.audience == repoReader && !r.private:
		return
	case c.token == nil:
		panic(traffic.Refuse(refuse(http.StatusUnauthorized, c.rt.doc, "Requires authentication")))
	case !inScope, !c.token.may(c.rt.permission, c.rt.level):
		panic(traffic.Refuse(c.notAccessible()))
	}
}

// notAccessible is the 403 of an App or a token without the right; it names the right.
func (c *call) notAccessible() answer {
	a := refuse(http.StatusForbidden, c.rt.doc, "Resource not accessible by "+c.token.kindOf())
	if c.rt.permission == "" {
		return a
	}
	var accepted []string
	for _, permission := range strings.Split(c.rt.permission, "|") {
		accepted = append(accepted, permission+"="+c.rt.level)
	}
	return a.With("X-Accepted-GitHub-Permissions", strings.Join(accepted, "; "))
}

// covers reports whether the token reaches the repository.
func (t *token) covers(r *repo) bool {
	return t.in.holds(r) && (t.repos == nil || t.repos[r.id])
}

// may reports whether both the token and its installation, as it is now, hold
// the permission, or one of several.
func (t *token) may(permission, level string) bool {
	return slices.ContainsFunc(strings.Split(permission, "|"), func(one string) bool {
		return grants(t.permissions[one], level) && grants(t.in.permissions[one], level)
	})
}

func grants(have, want string) bool {
	rank := map[string]int{"": 0, "read": 1, "write": 2, "admin": 3}
	return rank[have] >= rank[want] && rank[have] > 0
}

// limitKey names the budget a call counts against.
func (c *call) limitKey() string {
	switch {
	case c.token != nil:
		return "installation/" + itoa(c.token.in.id)
	case c.app != nil:
		return "app/" + itoa(c.app.ID)
	}
	return "nobody"
}

// overLimit counts the call and reports whether the hour's budget was spent before it.
func (c *call) overLimit() bool {
	u := c.g.usage[c.limitKey()]
	now := c.g.now()
	if u == nil || !now.Before(u.reset) {
		u = &usage{reset: now.Add(time.Hour)}
		c.g.usage[c.limitKey()] = u
	}
	u.used++
	return u.used > c.g.opts.RateLimit
}

// spent is what the rate-limit headers say.
func (c *call) spent() (limit, used int, reset time.Time) {
	if u := c.g.usage[c.limitKey()]; u != nil {
		return c.g.opts.RateLimit, min(u.used, c.g.opts.RateLimit), u.reset
	}
	return c.g.opts.RateLimit, 0, c.g.now().Add(time.Hour)
}
