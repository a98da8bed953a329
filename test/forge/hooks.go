// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"net/http"
	"slices"
)

// Hook is the settings of a repository's webhook, and its secret.
type Hook struct {
	ID                       int64
	URL, Secret, ContentType string
	Events                   []string
	Active                   bool
}

// Hooks returns the webhooks that were set up through the API, oldest first.
func (g *GitHub) Hooks(repo string) []Hook {
	defer g.lock()()
	return slices.Clone(g.mustRepo(repo).hooks)
}

// SetHook changes a webhook, as a user does on its page.
func (g *GitHub) SetHook(repo string, h Hook) {
	defer g.lock()()
	hooks := g.mustRepo(repo).hooks
	hooks[slices.IndexFunc(hooks, func(known Hook) bool { return known.ID == h.ID })] = h
}

func listHooks(c *call) answer {
	if !c.administers() {
		return notFound(c.rt.doc)
	}
	list := []*Hook{}
	for i := range c.repo.hooks {
		list = append(list, &c.repo.hooks[i])
	}
	return listed(c, list, (*Hook).json)
}

func createHook(c *call) answer {
	if !c.administers() {
		return notFound(c.rt.doc)
	}
	made := Hook{ID: c.g.core.NextID(), Active: true, Events: []string{"push"}, ContentType: "form"}
	if a, refused := c.setHook(&made); refused {
		return a
	}
	c.repo.hooks = append(c.repo.hooks, made)
	return created(made.json(c.g))
}

func updateHook(c *call) answer {
	at := slices.IndexFunc(c.repo.hooks, func(h Hook) bool { return h.ID == c.number("hook") })
	if at < 0 || !c.administers() {
		return notFound(c.rt.doc)
	}
	if a, refused := c.setHook(&c.repo.hooks[at]); refused {
		return a
	}
	return ok(c.repo.hooks[at].json(c.g))
}

// setHook changes a webhook. A config replaces the whole one.
func (c *call) setHook(h *Hook) (answer, bool) {
	var req struct {
		Active    *bool
		Events    []string
		AddEvents []string `json:"add_events"`
		Config    *struct {
			URL, Secret string
			ContentType string `json:"content_type"`
		}
	}
	if c.decode(&req) != nil {
		return c.problemsParsing(), true
	}
	wrong := func(message string) (answer, bool) {
		return validationFailed(c.rt.doc, fieldError{"Hook", "custom", "", message}), true
	}
	switch {
	case req.Config == nil || !webAddress(req.Config.URL):
		return wrong("The URL you've entered is not valid. Please make sure that you encode all special characters first")
	case slices.ContainsFunc(c.repo.hooks, func(o Hook) bool { return o.ID != h.ID && o.URL == req.Config.URL }):
		return wrong("Hook already exists on this repository")
	}
	h.URL, h.Secret, h.ContentType = req.Config.URL, req.Config.Secret, req.Config.ContentType
	if req.Active != nil {
		h.Active = *req.Active
	}
	if req.Events != nil {
		h.Events = req.Events
	}
	h.Events = slices.Compact(slices.Sorted(slices.Values(slices.Concat(h.Events, req.AddEvents))))
	return answer{}, false
}

func (h *Hook) json(*GitHub) object {
	return object{
		"id":     h.ID,
		"type":   "Repository",
		"name":   "web",
		"active": h.Active,
		"events": h.Events,
		"config": object{
			"url": h.URL, "secret": "********", "content_type": h.ContentType, "insecure_ssl": "0",
		},
	}
}

// administers reports whether the caller is a user with the role admin.
func (c *call) administers() bool {
	if c.token == nil || c.token.user == nil {
		return false
	}
	role, _ := c.repo.role(c.token.user)
	return roleRank(role) >= roleRank("admin")
}

func hookRoutes() []route {
	const r, doc, rights = "/repos/{owner}/{repo}/hooks", docs + "/repos/webhooks", "repository_hooks"
	return []route{
		{RouteHooks, http.MethodGet, r, repoMember, rights, "read", doc, listHooks},
		{RouteHookCreate, http.MethodPost, r, repoMember, rights, "write", doc, createHook},
		{RouteHookUpdate, http.MethodPatch, r + "/{hook}", repoMember, rights, "write", doc, updateHook},
	}
}
