// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"net/http"
	"net/url"
	"slices"
)

// hookFlags are the parameters of a hook that this GitLab has, and the events they are for.
func hookFlags() map[string]string {
	return map[string]string{
		"push_events": PushHook, "tag_push_events": TagPushHook, "merge_requests_events": MergeRequestHook, "note_events": NoteHook,
	}
}

func createHook(c *call) answer {
	if c.text("url") == "" {
		return badParameter("url is missing")
	}
	h := &hook{project: c.project, events: []string{PushHook}, created: c.g.now()} // pushes unless it says otherwise
	if a, refused := c.setHook(h); refused {
		return a
	}
	h.id = c.g.core.NextID()
	c.g.hooks[h.id] = h
	return created(h.json(c.g))
}

func updateHook(c *call) answer {
	h := c.hook()
	if a, refused := c.setHook(h); refused {
		return a
	}
	return ok(h.json(c.g))
}

func deleteHook(c *call) answer {
	delete(c.g.hooks, c.hook().id)
	return answer{Status: http.StatusNoContent}
}

// setHook changes what the parameters name. A token that is not named stays, unless the URL
// changes.
func (c *call) setHook(h *hook) (answer, bool) {
	if address := c.text("url"); address != "" {
		if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return answer{Status: http.StatusUnprocessableEntity, Body: object{"error": "Invalid url given"}}, true
		}
		if address != h.url {
			h.token = ""
		}
		h.url = address
	}
	if _, named := c.params["token"]; named {
		h.token = c.text("token")
	}
	for flag, event := range hookFlags() {
		if _, named := c.params[flag]; !named {
			continue
		}
		h.events = slices.DeleteFunc(slices.Clone(h.events), func(e string) bool { return e == event })
		if c.yes(flag) {
			h.events = append(h.events, event)
		}
	}
	return answer{}, false
}

// getTokenSelf describes the caller's token. An OAuth token is none of these.
func getTokenSelf(c *call) answer {
	if c.token.oauth {
		return badParameter("400 Bad request - This endpoint requires token type to be a personal access token")
	}
	return ok(object{
		"id": c.user.id, "name": "token", "revoked": false, "active": true, "scopes": c.token.scopes,
		"user_id": c.user.id, "expires_at": stamp(c.token.expires),
	})
}

// Hook is a webhook's settings as its maintainer sees them, and its secret token.
type Hook struct {
	ID         int64
	URL, Token string
	Events     []string // sorted
}

// Hooks returns the webhooks of a project, oldest first.
func (g *GitLab) Hooks(project string) (list []Hook) {
	defer g.lock()()
	p := g.mustProject(project)
	for _, h := range g.hooks {
		if h.project == p {
			list = append(list, Hook{h.id, h.url, h.token, slices.Sorted(slices.Values(h.events))})
		}
	}
	slices.SortFunc(list, func(a, b Hook) int { return int(a.ID - b.ID) })
	return list
}
