// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"cmp"
	"slices"
	"time"
)

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

// Current is the newest status with this name on a commit: the one whose state GitLab shows.
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
	by := c.order("id", "asc", "pipeline_id")
	sha := c.r.PathValue("sha")
	if c.project.resolve(sha) == "" {
		return notFound("Commit")
	}
	var list []*status
	for _, s := range c.g.statuses {
		if s.pipeline.project == c.project && s.pipeline.sha == sha && c.wants(s) {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b *status) int {
		if by.column == "pipeline_id" && a.pipeline != b.pipeline {
			return cmp.Compare(a.pipeline.id, b.pipeline.id)
		}
		return cmp.Compare(a.id, b.id)
	})
	if by.desc {
		slices.Reverse(list)
	}
	return paged(c, list, func(s *status) object { return s.json(c.g) })
}

// wants reports whether the caller asks for this status.
func (c *call) wants(s *status) bool {
	return (c.yes("all") || !s.retried) && c.matches("ref", s.ref) && c.matches("name", s.name) &&
		c.matches("stage", "external") && c.matches("pipeline_id", itoa(s.pipeline.id))
}
