// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"
)

// pipeline is what holds the statuses of a commit on a ref.
type pipeline struct {
	id      int64
	project *project
	sha     string
	ref     string
	user    *user
	created time.Time
}

// status is one commit status. A finished one is never written again: the
// next post of its name makes another one and marks this one as retried.
type status struct {
	id          int64
	pipeline    *pipeline
	name        string
	state       string
	ref         string
	targetURL   any // string or nil
	description any
	coverage    any
	user        *user
	retried     bool
	created     time.Time
	started     time.Time
	finished    time.Time
	updates     int
}

// CommitStatus is a commit status as a test sees it.
type CommitStatus struct {
	ID          int64
	PipelineID  int64
	Project     string
	SHA         string
	Ref         string
	Name        string
	State       string // pending, running, success, failed, canceled or skipped
	TargetURL   string
	Description string
	Author      string
	Retried     bool // replaced by a later one of its name in the pipeline
	CreatedAt   time.Time
	FinishedAt  time.Time // zero while pending or running
	Updates     int       // posts after the one that made it
}

func (s *status) view() CommitStatus {
	str := func(v any) string { t, _ := v.(string); return t }
	return CommitStatus{
		ID: s.id, PipelineID: s.pipeline.id, Project: s.pipeline.project.path, SHA: s.pipeline.sha, Ref: s.ref, Name: s.name,
		State: s.state, TargetURL: str(s.targetURL), Description: str(s.description), Author: s.user.username,
		Retried: s.retried, CreatedAt: s.created, FinishedAt: s.finished, Updates: s.updates,
	}
}

// StatusesFor lists all statuses of a commit in a project, oldest first.
func (s *State) StatusesFor(project, sha string) []CommitStatus {
	var out []CommitStatus
	for _, st := range s.g.statuses {
		if key(st.pipeline.project.path) == key(project) && st.pipeline.sha == sha {
			out = append(out, st.view())
		}
	}
	return out
}

// Current is the newest status with this name on a commit: the one whose
// state GitLab shows.
func (s *State) Current(project, sha, name string) (CommitStatus, bool) {
	for _, st := range slices.Backward(s.StatusesFor(project, sha)) {
		if st.Name == name {
			return st, true
		}
	}
	return CommitStatus{}, false
}

// StatusesFor is State.StatusesFor.
func (g *GitLab) StatusesFor(project, sha string) []CommitStatus {
	return locked(g, func(s *State) []CommitStatus { return s.StatusesFor(project, sha) })
}

// Current is State.Current.
func (g *GitLab) Current(project, sha, name string) (CommitStatus, bool) {
	var found bool
	st := locked(g, func(s *State) CommitStatus {
		var st CommitStatus
		st, found = s.Current(project, sha, name)
		return st
	})
	return st, found
}

// newestPipeline is the newest pipeline of a commit, of one ref and with one
// id if these are given, or nil.
func (g *GitLab) newestPipeline(p *project, sha, ref string, id int64) *pipeline {
	for _, pl := range slices.Backward(g.pipelines) {
		if pl.project == p && pl.sha == sha && (ref == "" || pl.ref == ref) && (id == 0 || pl.id == id) {
			return pl
		}
	}
	return nil
}

// pipelineStatus sums the latest statuses up.
func (g *GitLab) pipelineStatus(pl *pipeline) string {
	have := map[string]bool{}
	for _, s := range g.statuses {
		if s.pipeline == pl && !s.retried {
			have[s.state] = true
		}
	}
	for _, state := range []string{"running", "pending", "failed", "canceled", "success"} {
		if have[state] {
			return state
		}
	}
	return "skipped"
}

func (g *GitLab) pipelineJSON(pl *pipeline) object {
	return object{
		"id": pl.id, "iid": pl.id, "project_id": pl.project.id, "sha": pl.sha, "ref": pl.ref, "status": g.pipelineStatus(pl),
		"source": "external", "created_at": stamp(pl.created), "updated_at": stamp(pl.created),
		"web_url": pl.project.web(g) + "/-/pipelines/" + itoa(pl.id),
	}
}

func (s *status) json(g *GitLab) object {
	return object{
		"id": s.id, "sha": s.pipeline.sha, "ref": s.ref, "status": s.state, "name": s.name, "target_url": s.targetURL,
		"description": s.description, "created_at": stamp(s.created), "started_at": stamp(s.started),
		"finished_at": stamp(s.finished), "allow_failure": false, "coverage": s.coverage,
		"pipeline_id": s.pipeline.id, "author": s.user.json(g),
	}
}

func listStatuses(c *call) answer {
	order, sort := orDefault(c.text("order_by"), "id"), orDefault(c.text("sort"), "asc")
	if order != "id" && order != "pipeline_id" || sort != "asc" && sort != "desc" {
		return badParameter("order_by or sort does not have a valid value")
	}
	sha := c.r.PathValue("sha")
	if c.project.resolve(sha) == "" {
		return notFound("Commit")
	}
	var list []*status
	for _, s := range c.g.statuses {
		if s.pipeline.project == c.project && s.pipeline.sha == sha && (c.yes("all") || !s.retried) &&
			c.matches("ref", s.ref) && c.matches("name", s.name) && c.matches("stage", "external") &&
			c.matches("pipeline_id", itoa(s.pipeline.id)) {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b *status) int {
		if order == "pipeline_id" && a.pipeline != b.pipeline {
			return cmp.Compare(a.pipeline.id, b.pipeline.id)
		}
		return cmp.Compare(a.id, b.id)
	})
	if sort == "desc" {
		slices.Reverse(list)
	}
	return paged(c, list, func(s *status) object { return s.json(c.g) })
}

// statusName is the name a status is posted under.
func (c *call) statusName() string {
	return orDefault(orDefault(c.text("name"), c.text("context")), "default")
}

func createStatus(c *call) answer {
	if problem := c.checkState(); problem != "" {
		return badParameter(problem)
	}
	if c.project.levelOf(c.user) < Developer {
		return forbidden()
	}
	sha := c.project.resolve(c.r.PathValue("sha"))
	if sha == "" {
		return notFound("Commit")
	}
	pl, problem := c.pipelineFor(sha)
	if problem != nil {
		return *problem
	}
	if need := c.project.protected[pl.ref]; c.project.levelOf(c.user) < need {
		return forbidden()
	}
	if problem := c.checkStatusFields(); problem != nil {
		return *problem
	}
	if pl.id == 0 {
		pl.id = c.g.nextID()
		c.g.pipelines = append(c.g.pipelines, pl)
	}
	return c.writeStatus(pl)
}

func (c *call) checkState() string {
	states := []string{"pending", "running", "success", "failed", "canceled", "skipped"}
	if c.g.opts.NoSkipped {
		states = states[:5]
	}
	switch state := c.text("state"); {
	case state == "":
		return "state is missing"
	case !slices.Contains(states, state):
		return "state does not have a valid value"
	}
	return ""
}

// pipelineFor finds the pipeline the status goes to, or makes one that has no
// id yet.
func (c *call) pipelineFor(sha string) (*pipeline, *answer) {
	ref, wanted := c.text("ref"), c.text("pipeline_id")
	if wanted != "" {
		for _, pl := range c.g.pipelines {
			if itoa(pl.id) == wanted && pl.project == c.project && pl.sha == sha && (ref == "" || pl.ref == ref) {
				return pl, nil
			}
		}
		a := notFound("Pipeline for pipeline_id, sha and ref")
		return nil, &a
	}
	if pl := c.g.newestPipeline(c.project, sha, ref, 0); pl != nil {
		return pl, nil
	}
	if ref == "" {
		branches := c.project.holding(c.project.branches, sha)
		if len(branches) == 0 {
			a := notFound("References for commit")
			return nil, &a
		}
		ref = branches[0]
	}
	return &pipeline{project: c.project, sha: sha, ref: ref, user: c.user, created: c.g.now()}, nil
}

// maxStatusText is the most characters of a status's texts.
const maxStatusText = 255

func (c *call) checkStatusFields() *answer {
	for _, field := range []string{"ref", "target_url", "description"} {
		if len([]rune(c.text(field))) > maxStatusText {
			a := invalid(field, "is too long (maximum is 255 characters)")
			return &a
		}
	}
	if u := c.text("target_url"); u != "" && !strings.HasPrefix(u, "http://") && !strings.HasPrefix(u, "https://") {
		a := invalid("target_url", "is blocked: Only allowed schemes are http, https")
		return &a
	}
	return nil
}

// writeStatus updates the caller's unfinished status of the name, or makes one.
func (c *call) writeStatus(pl *pipeline) answer {
	name, state := c.statusName(), c.text("state")
	var s *status
	for _, old := range c.g.statuses {
		if old.pipeline == pl && old.name == name && old.user == c.user && !old.done() {
			s = old
		}
	}
	if s != nil {
		if refusal := s.refuses(state, c.g.opts.AcceptRepeated); refusal != "" {
			return refuse(http.StatusBadRequest, refusal)
		}
		s.updates++
	} else {
		s = &status{id: c.g.nextID(), pipeline: pl, name: name, ref: pl.ref, user: c.user, created: c.g.now()}
		c.g.statuses = append(c.g.statuses, s)
	}
	for field, into := range map[string]*any{"target_url": &s.targetURL, "description": &s.description} {
		if v := c.text(field); v != "" {
			*into = v
		}
	}
	if v, given := c.params["coverage"]; given {
		s.coverage = v
	}
	s.enter(state, c.g.now())
	for _, old := range c.g.statuses {
		if old != s && old.pipeline == pl && old.name == name {
			old.retried = true
		}
	}
	c.status = s
	return created(s.json(c.g))
}

func (s *status) done() bool { return s.state != "pending" && s.state != "running" }

// refuses says why an unfinished status does not take a state; "" is it does.
func (s *status) refuses(state string, repeated bool) string {
	if repeated && state == s.state {
		return ""
	}
	event := map[string]string{"pending": "enqueue", "running": "run", "skipped": "skip"}[state]
	if event == "" || s.state == "pending" && event != "enqueue" {
		return ""
	}
	return cannotTransition(event, s.state)
}

func cannotTransition(event, from string) string {
	return "Cannot transition status via :" + event + " from :" + from + ` (Reason(s): Status cannot transition via "` + event + `")`
}

func (s *status) enter(state string, now time.Time) {
	if state == "running" && s.started.IsZero() {
		s.started = now
	}
	s.state = state
	if s.done() && state != "skipped" {
		s.finished = now
	}
}
