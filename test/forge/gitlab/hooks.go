// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"cmp"
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// Kinds of events a hook may be for, as the X-Gitlab-Event header names them.
const (
	PushHook         = "Push Hook"
	TagPushHook      = "Tag Push Hook"
	MergeRequestHook = "Merge Request Hook"
	NoteHook         = "Note Hook"
)

// When a failing hook is paused and when it is given up.
const (
	failuresBeforePause = 3
	failuresBeforeEnd   = 39
	longestPause        = 1440 // first pauses: a day of minutes
)

// What a hook's alert_status can be.
const (
	HookExecutable = "executable"
	HookPaused     = "temporarily_disabled"
	HookDisabled   = "disabled"
)

type hook struct {
	id       int64
	project  *project
	url      string
	token    string
	events   []string
	failures int
	until    time.Time
	created  time.Time
}

// HookState is what GitLab thinks of a hook.
type HookState struct {
	AlertStatus   string
	Failures      int       // consecutive
	DisabledUntil time.Time // zero if it never was paused
}

// AddHook adds a webhook to a project and returns its id. Without events it is for pushes, tags,
// merge requests and notes. An empty token sends no X-Gitlab-Token.
func (g *GitLab) AddHook(project, url, token string, events ...string) int64 {
	defer g.lock()()
	if len(events) == 0 {
		events = []string{PushHook, TagPushHook, MergeRequestHook, NoteHook}
	}
	h := &hook{
		id: g.core.NextID(), project: g.mustProject(project), url: url, token: token, events: events, created: g.now(),
	}
	g.hooks[h.id] = h
	return h.id
}

// SetHookURL points a hook elsewhere.
func (g *GitLab) SetHookURL(id int64, url string) {
	defer g.lock()()
	g.mustHook(id).url = url
}

// HookState says whether a hook still delivers.
func (g *GitLab) HookState(id int64) HookState {
	defer g.lock()()
	h := g.mustHook(id)
	return HookState{h.alert(g), h.failures, h.until}
}

func (g *GitLab) mustHook(id int64) *hook {
	h := g.hooks[id]
	if h == nil {
		invalidUse("no hook %d", id)
	}
	return h
}

// hookFor is the hook with the id, or the project's first for the event.
func (g *GitLab) hookFor(id int64, p *project, event string) *hook {
	if id != 0 {
		return g.mustHook(id)
	}
	var found *hook
	for _, h := range g.hooks {
		if h.project == p && slices.Contains(h.events, event) && (found == nil || h.id < found.id) {
			found = h
		}
	}
	if found == nil {
		invalidUse("no %s in %s", event, p.path)
	}
	return found
}

// alert is the hook's alert_status.
func (h *hook) alert(g *GitLab) string {
	switch {
	case g.opts.KeepFailingHooks:
		return HookExecutable
	case h.failures > failuresBeforeEnd:
		return HookDisabled
	case h.failures > failuresBeforePause && !h.until.Before(g.opts.Now()):
		return HookPaused
	}
	return HookExecutable
}

// settle counts how a delivery went.
func (h *hook) settle(g *GitLab, good bool) {
	if good {
		h.failures, h.until = 0, time.Time{}
		return
	}
	if h.alert(g) != HookExecutable {
		return
	}
	h.failures++
	if h.failures <= failuresBeforePause || g.opts.KeepFailingHooks {
		return
	}
	pause, longest := g.opts.FirstPause, longestPause*g.opts.FirstPause
	for range h.failures - failuresBeforePause - 1 {
		pause = min(2*pause, longest)
	}
	h.until = g.opts.Now().Add(pause)
}

func (h *hook) json(g *GitLab) object {
	has := func(e string) bool { return slices.Contains(h.events, e) }
	return object{
		"id": h.id, "url": h.url, "name": nil, "description": nil, "project_id": h.project.id, "created_at": stamp(h.created),
		"push_events": has(PushHook), "tag_push_events": has(TagPushHook), "merge_requests_events": has(MergeRequestHook),
		"note_events": has(NoteHook), "enable_ssl_verification": true, "push_events_branch_filter": "",
		"alert_status": h.alert(g), "disabled_until": stamp(h.until), "url_variables": []object{},
		"custom_headers": []object{},
	}
}

func listHooks(c *call) answer {
	var list []*hook
	for _, h := range c.g.hooks {
		if h.project == c.project {
			list = append(list, h)
		}
	}
	slices.SortFunc(list, func(a, b *hook) int { return cmp.Compare(a.id, b.id) })
	return paged(c, list, func(h *hook) object { return h.json(c.g) })
}

// hook is that of the path.
func (c *call) hook() *hook {
	h := c.g.hooks[c.number("hook")]
	if h == nil || h.project != c.project {
		panic(traffic.Refuse(noRecord()))
	}
	return h
}
