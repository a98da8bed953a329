// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// maxTokenRepos is how many repositories a token may be narrowed to.
const maxTokenRepos = 500

func getApp(c *call) answer { return ok(c.app.json(c.g)) }

func (a *app) json(g *GitHub) object {
	return object{
		"id": a.ID, "slug": a.Slug, "name": a.Slug, "node_id": nodeID("A", a.ID),
		"html_url": g.core.BaseURL + "/apps/" + a.Slug, "external_url": "https://example.com",
		"owner": g.accountOf(a.Slug+"-owner", "Organization").json(g), "events": []string{"push", "pull_request"},
	}
}

func getInstallation(c *call) answer {
	in := c.g.installs[c.number("id")]
	if in == nil || in.app != c.app {
		return notFound(c.rt.doc)
	}
	return ok(in.json(c.g))
}

func getRepoInstallation(c *call) answer {
	r := c.g.repos[key(c.r.PathValue("owner")+"/"+c.r.PathValue("repo"))]
	if r == nil {
		return notFound(c.rt.doc)
	}
	in := c.g.installationFor(c.app.ID, r)
	if in == nil {
		return notFound(c.rt.doc)
	}
	return ok(in.json(c.g))
}

func (in *installation) json(g *GitHub) object {
	id := itoa(in.id)
	o := object{
		"id": in.id, "account": in.account.json(g), "app_id": in.app.ID, "app_slug": in.app.Slug,
		"target_id": in.account.id, "target_type": in.account.kind,
		"repository_selection": in.selection(), "permissions": in.permissions,
		"events":            []string{"push", "pull_request"},
		"access_tokens_url": g.core.BaseURL + "/api/v3/app/installations/" + id + "/access_tokens",
		"repositories_url":  g.core.BaseURL + "/api/v3/installation/repositories",
		"html_url":          g.core.BaseURL + "/organizations/" + in.account.login + "/settings/installations/" + id,
		"created_at":        in.created.Format(time.RFC3339), "updated_at": in.created.Format(time.RFC3339),
		"suspended_at": nil, "suspended_by": nil, "single_file_name": nil,
	}
	if in.suspended {
		o["suspended_at"] = g.now().Format(time.RFC3339)
	}
	return o
}

func (in *installation) selection() string {
	if in.all {
		return "all"
	}
	return "selected"
}

// tokenRequest is the body of POST access_tokens.
type tokenRequest struct {
	Repositories  []string          `json:"repositories"`
	RepositoryIDs []int64           `json:"repository_ids"`
	Permissions   map[string]string `json:"permissions"`
}

func createToken(c *call) answer {
	in := c.g.installs[c.number("id")]
	if in == nil || in.app != c.app {
		return notFound(c.rt.doc)
	}
	if in.suspended {
		return refuse(http.StatusForbidden, c.rt.doc, "This installation has been suspended")
	}
	var req tokenRequest
	if err := c.decode(&req); err != nil {
		return c.problemsParsing()
	}
	repos, problem := c.narrow(in, req)
	if problem != "" {
		return refuse(http.StatusUnprocessableEntity, c.rt.doc, problem)
	}
	perms := maps.Clone(in.permissions)
	if req.Permissions != nil {
		for p, level := range req.Permissions {
			if !grants(in.permissions[p], level) || level == "" {
				return refuse(http.StatusUnprocessableEntity, c.rt.doc,
					"The permissions requested are not granted to this installation.")
			}
		}
		// Every App may read the metadata of what it is installed on.
		perms = maps.Clone(req.Permissions)
		perms["metadata"] = "read"
	}
	return c.mint(&token{in: in, repos: repos, permissions: perms})
}

// revokeToken ends the token that the call came with.
func revokeToken(c *call) answer {
	if c.token == nil {
		return refuse(http.StatusUnauthorized, c.rt.doc, "Requires authentication")
	}
	c.g.revoke(c.token)
	return noContent()
}

// listCovered lists what the token of the call reaches.
func listCovered(c *call) answer {
	if c.token == nil {
		return refuse(http.StatusUnauthorized, c.rt.doc, "Requires authentication")
	}
	if !c.token.may(c.rt.permission, c.rt.level) {
		return c.notAccessible()
	}
	var all []*repo
	for _, r := range c.g.repos {
		if c.token.covers(r) {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *repo) int { return int(a.id - b.id) })
	part, link := page(c.g, c.r, all)
	list := []object{}
	for _, r := range part {
		list = append(list, r.json(c.g))
	}
	a := ok(object{"total_count": len(all), "repository_selection": c.token.in.selection(), "repositories": list})
	return a.With("Link", link)
}

// Minted returns every installation token that was ever issued, those that work no more included.
func (g *GitHub) Minted() []string {
	defer g.lock()()
	return slices.Clone(g.minted)
}

// TokensWith returns the installation tokens that work now and have the permission, like those an
// attacker might look for in a cluster.
func (g *GitHub) TokensWith(permission, level string) []string {
	defer g.lock()()
	var found []string
	for secret, t := range g.tokens {
		if g.valid(secret) != nil && t.may(permission, level) {
			found = append(found, secret)
		}
	}
	return found
}

// revoke makes a token unknown.
func (g *GitHub) revoke(t *token) {
	maps.DeleteFunc(g.tokens, func(_ string, known *token) bool { return known == t })
}

// narrow resolves the repositories that a token is requested for; nil is all.
func (c *call) narrow(in *installation, req tokenRequest) (map[int64]bool, string) {
	if req.Repositories == nil && req.RepositoryIDs == nil {
		return nil, ""
	}
	if len(req.Repositories)+len(req.RepositoryIDs) > maxTokenRepos {
		return nil, "There are too many repositories listed in the request."
	}
	const missing = "There is at least one repository that does not exist or is not accessible to the parent installation."
	out := map[int64]bool{}
	for _, name := range req.Repositories {
		r := c.g.repos[key(in.account.login+"/"+name)]
		if r == nil || !in.holds(r) {
			return nil, missing
		}
		out[r.id] = true
	}
	for _, id := range req.RepositoryIDs {
		r := c.g.repoByID(id)
		if r == nil || !in.holds(r) {
			return nil, missing
		}
		out[id] = true
	}
	if len(out) == 0 {
		return nil, ""
	}
	return out, ""
}

// Mint issues a token with all rights of an installation, for tests that act in the App's place.
func (g *GitHub) Mint(installationID int64) string {
	defer g.lock()()
	in := g.mustInstallation(installationID)
	return g.mint(&token{in: in, permissions: maps.Clone(in.permissions)})
}

// mint makes a token known. The caller holds mu.
func (g *GitHub) mint(t *token) (secret string) {
	secret = "ghs_" + traffic.RandomHex(18)
	t.expires = g.now().Add(g.opts.TokenLife)
	g.tokens[secret] = t
	g.minted = append(g.minted, secret)
	return secret
}

func (c *call) mint(t *token) answer {
	secret := c.g.mint(t)
	body := object{
		"token": secret, "expires_at": t.expires.Format(time.RFC3339),
		"permissions": t.permissions, "repository_selection": t.in.selection(),
	}
	if t.repos != nil {
		body["repository_selection"] = "selected"
		var list []object
		for _, id := range slices.Sorted(maps.Keys(t.repos)) {
			list = append(list, c.g.repoByID(id).json(c.g))
		}
		body["repositories"] = list
	}
	return created(body)
}

// key is how names are compared: GitHub ignores their case.
func key(name string) string { return strings.ToLower(name) }

func nodeID(kind string, id int64) string { return kind + "_" + itoa(id) }
