// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// statusName is the name a status is posted under.
func (c *call) statusName() string {
	return cmp.Or(cmp.Or(c.text("name"), c.text("context")), "default")
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
	pl := c.pipelineFor(sha)
	if need := c.project.protected[pl.ref]; c.project.levelOf(c.user) < need {
		return forbidden()
	}
	c.checkStatusFields()
	if pl.id == 0 {
		pl.id = c.g.core.NextID()
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

// pipelineFor finds the pipeline the status goes to, or makes one that has no id yet.
func (c *call) pipelineFor(sha string) *pipeline {
	ref, wanted := c.text("ref"), c.text("pipeline_id")
	if wanted != "" {
		for _, pl := range c.g.pipelines {
			if itoa(pl.id) == wanted && pl.project == c.project && pl.sha == sha && (ref == "" || pl.ref == ref) {
				return pl
			}
		}
		panic(traffic.Refuse(notFound("Pipeline for pipeline_id, sha and ref")))
	}
	if pl := c.g.newestPipeline(c.project, sha, ref, 0); pl != nil {
		return pl
	}
	if ref == "" {
		branches := c.project.holding(c.project.branches, sha)
		if len(branches) == 0 {
			panic(traffic.Refuse(notFound("References for commit")))
		}
		ref = branches[0]
	}
	return &pipeline{project: c.project, sha: sha, ref: ref, user: c.user, created: c.g.now()}
}

// maxStatusText is the most characters of a status's texts.
const maxStatusText = 255

func (c *call) checkStatusFields() {
	for _, field := range []string{"ref", "target_url", "description"} {
		if len([]rune(c.text(field))) > maxStatusText {
			panic(traffic.Refuse(invalid(field, "is too long (maximum is 255 characters)")))
		}
	}
	if u := c.text("target_url"); u != "" && !strings.HasPrefix(u, "http://") && !strings.HasPrefix(u, "https://") {
		panic(traffic.Refuse(invalid("target_url", "is blocked: Only allowed schemes are http, https")))
	}
}

// writeStatus updates the caller's unfinished status of the name, or makes one.
func (c *call) writeStatus(pl *pipeline) answer {
	name, state := c.statusName(), c.text("state")
	s := c.g.unfinished(pl, name, c.user)
	if s == nil {
		s = &status{
			id: c.g.core.NextID(), pipeline: pl, name: name, ref: pl.ref, user: c.user, created: c.g.now(), updates: -1,
		}
		c.g.statuses = append(c.g.statuses, s)
	} else if refusal := s.refuses(state, c.g.opts.AcceptRepeated); refusal != "" {
		return refuse(http.StatusBadRequest, refusal)
	}
	s.updates++
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
		old.retried = old.retried || old != s && old.pipeline == pl && old.name == name
	}
	c.status = s
	return created(s.json(c.g))
}

// unfinished is a user's pending or running status of a name, or nil.
func (g *GitLab) unfinished(pl *pipeline, name string, u *user) *status {
	for _, s := range slices.Backward(g.statuses) {
		if s.pipeline == pl && s.name == name && s.user == u && !s.done() {
			return s
		}
	}
	return nil
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
	return "Cannot transition status via :" + event + " from :" + from + ` (Reason(s): Status cannot transition via "` +
		event + `")`
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
