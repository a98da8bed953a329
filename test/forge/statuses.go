// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// GitHub's limits on a commit status; rules.md has their pages.
const (
	maxStatusText = 140  // characters of a description
	maxStatuses   = 1000 // of one context on a commit
)

// CommitStatus is a commit status as the forge holds it. None is ever changed.
type CommitStatus struct {
	ID                                             int64
	SHA, Context, State, Description, URL, Creator string
	At                                             time.Time
}

type commitStatus struct {
	CommitStatus
	repo *repo
	by   *account
}

// StatusesFor lists the statuses of a commit, oldest first.
func (s *State) StatusesFor(repo, sha string) (all []CommitStatus) {
	for _, one := range s.g.statuses {
		if key(one.repo.fullName()) == key(repo) && one.SHA == sha {
			all = append(all, one.CommitStatus)
		}
	}
	return all
}

// StatusesFor is State.StatusesFor.
func (g *GitHub) StatusesFor(repo, sha string) []CommitStatus {
	return locked(g, func(s *State) []CommitStatus { return s.StatusesFor(repo, sha) })
}

// CurrentStatus is the newest status of a context on a commit: the one that GitHub shows.
func (s *State) CurrentStatus(repo, sha, context string) (CommitStatus, bool) {
	for _, one := range slices.Backward(s.StatusesFor(repo, sha)) {
		if strings.EqualFold(one.Context, context) {
			return one, true
		}
	}
	return CommitStatus{}, false
}

func createStatus(c *call) answer {
	var req struct {
		State, Description, Context string
		URL                         *string `json:"target_url"`
	}
	if c.decode(&req) != nil {
		return c.problemsParsing()
	}
	if c.token.user != nil && !c.pushes() {
		return notFound(c.rt.doc)
	}
	cm := c.commitAt(c.r.PathValue("sha"))
	wrong := func(field, message string) answer {
		return validationFailed(c.rt.doc, fieldError{"Status", "custom", field, message})
	}
	switch {
	case !slices.Contains([]string{"error", "failure", "pending", "success"}, req.State):
		return wrong("state", "state is not included in the list")
	case utf8.RuneCountInString(req.Description) > maxStatusText:
		return wrong("description", "description is too long (maximum is 140 characters)")
	case strings.ContainsFunc(req.Description, func(r rune) bool { return r > math.MaxUint16 }):
		return wrong("description", "description doesn't accept 4-byte Unicode")
	case req.URL != nil && !webAddress(*req.URL):
		return wrong("target_url", "target_url must use http(s) scheme")
	}
	if req.Context == "" {
		req.Context = "default"
	}
	if c.countStatuses(cm.SHA, req.Context) >= maxStatuses {
		return wrong("", "This SHA and context has reached the maximum number of statuses.")
	}
	by := c.bot()
	made := &commitStatus{repo: c.repo, by: by, CommitStatus: CommitStatus{
		ID: c.g.core.NextID(), SHA: cm.SHA, Context: req.Context, State: req.State, Description: req.Description,
		URL: deref(req.URL), Creator: by.login, At: c.g.now(),
	}}
	c.g.statuses = append(c.g.statuses, made)
	return created(made.json(c.g))
}

// countStatuses returns how many statuses a commit has with a context.
func (c *call) countStatuses(sha, context string) (same int) {
	for _, one := range c.g.statuses {
		if one.repo == c.repo && one.SHA == sha && strings.EqualFold(one.Context, context) {
			same++
		}
	}
	return same
}

func webAddress(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// listStatuses lists the newest first.
func listStatuses(c *call) answer {
	cm := c.commitAt(c.r.PathValue("ref"))
	var list []*commitStatus
	for _, one := range slices.Backward(c.g.statuses) {
		if one.repo == c.repo && one.SHA == cm.SHA {
			list = append(list, one)
		}
	}
	return listed(c, list, (*commitStatus).json)
}

func (s *commitStatus) json(g *GitHub) object {
	o := object{
		"id": s.ID, "node_id": nodeID("SC", s.ID), "state": s.State, "description": s.Description, "target_url": s.URL,
		"context": s.Context, "creator": s.by.json(g), "url": s.repo.api(g) + "/statuses/" + s.SHA,
		"created_at": s.At.Format(time.RFC3339), "updated_at": s.At.Format(time.RFC3339),
	}
	if s.URL == "" {
		o["target_url"] = nil
	}
	return o
}

func statusRoutes() []route {
	const r, doc = "/repos/{owner}/{repo}", docs + "/commits/statuses"
	return []route{
		{RouteStatusCreate, http.MethodPost, r + "/statuses/{sha}", repoMember, "statuses", "write", doc, createStatus},
		{RouteStatusList, http.MethodGet, r + "/commits/{ref}/statuses", repoReader, "statuses", "read", doc, listStatuses},
		{RouteUser, http.MethodGet, "/user", anyToken, "", "", docs + "/users/users", getUser},
	}
}
