// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// mrOfPath is the merge request that {iid} means, or GitLab's refusal.
func (c *call) mrOfPath() *mergeRequest {
	m := c.project.mr(c.number("iid"))
	if m == nil {
		panic(traffic.Refuse(noRecord()))
	}
	return m
}

func listMergeRequests(c *call) answer {
	state := cmp.Or(c.text("state"), "all")
	var list []*mergeRequest
	for _, m := range slices.Backward(c.project.mrs) {
		if (state == "all" || state == m.state) && c.matches("source_branch", m.sourceBranch) &&
			c.matches("target_branch", m.targetBranch) && c.matches("author_username", m.author.username) {
			list = append(list, m)
		}
	}
	return paged(c, list, func(m *mergeRequest) object { return m.json(c.g) })
}

// matches reports whether the parameter is absent or has the value.
func (c *call) matches(name, value string) bool {
	return c.text(name) == "" || c.text(name) == value
}

func getMergeRequest(c *call) answer {
	m := c.mrOfPath()
	return ok(m.full(c.g))
}

func listMRDiffs(c *call) answer {
	m := c.mrOfPath()
	changes := m.changes()
	return paged(c, changes[:min(len(changes), c.g.opts.DiffLimit)], m.target.diffJSON)
}

func (m *mergeRequest) web(g *GitLab) string {
	return m.target.web(g) + "/-/merge_requests/" + itoa(m.iid)
}

func (m *mergeRequest) json(g *GitLab) object {
	labels := slices.Sorted(slices.Values(m.labels))
	if labels == nil {
		labels = []string{}
	}
	status := "mergeable"
	if m.state != "opened" {
		status = "not_open"
	} else if m.draft() {
		status = "draft_status"
	}
	o := object{
		"id": m.id, "iid": m.iid, "project_id": m.target.id, "title": m.title, "description": m.description,
		"state": m.state, "created_at": stamp(m.created), "updated_at": stamp(m.updated),
		"merged_by": nil, "merge_user": nil, "merged_at": nil, "closed_by": nil, "closed_at": nil,
		"target_branch": m.targetBranch, "source_branch": m.sourceBranch,
		"source_project_id": m.source.id, "target_project_id": m.target.id,
		"author": m.author.json(g), "assignees": []object{}, "assignee": nil, "reviewers": []object{},
		"user_notes_count": len(g.notesOf(m, false)), "upvotes": 0, "downvotes": 0, "labels": labels,
		"draft": m.draft(), "work_in_progress": m.draft(), "milestone": nil, "merge_when_pipeline_succeeds": false,
		"merge_status": "can_be_merged", "detailed_merge_status": status, "sha": m.head,
		"merge_commit_sha": nil, "squash_commit_sha": nil, "discussion_locked": nil,
		"should_remove_source_branch": nil, "force_remove_source_branch": false, "prepared_at": stamp(m.created),
		"reference": "!" + itoa(m.iid),
		"references": object{
			"short": "!" + itoa(m.iid), "relative": "!" + itoa(m.iid), "full": m.target.path + "!" + itoa(m.iid),
		},
		"web_url": m.web(g), "squash": false, "has_conflicts": false, "blocking_discussions_resolved": true,
	}
	if m.state != "opened" {
		o["closed_at"] = stamp(m.closed)
	}
	if m.merged != "" {
		o["merge_commit_sha"], o["merged_at"], o["closed_at"] = m.merged, stamp(m.closed), nil
	}
	return o
}

// full adds what only the single merge request carries.
func (m *mergeRequest) full(g *GitLab) object {
	o := m.json(g)
	n := len(m.changes())
	o["changes_count"] = strconv.Itoa(n)
	if n > g.opts.DiffLimit {
		o["changes_count"] = strconv.Itoa(g.opts.DiffLimit) + "+"
	}
	o["diff_refs"] = object{"base_sha": m.base(), "head_sha": m.head, "start_sha": m.start()}
	o["subscribed"], o["merge_error"], o["user"] = false, nil, object{"can_merge": false}
	o["pipeline"], o["head_pipeline"] = nil, nil
	if pl := g.newestPipeline(m.source, m.head, "", 0); pl != nil {
		o["head_pipeline"] = g.pipelineJSON(pl)
		o["pipeline"] = o["head_pipeline"]
	}
	return o
}

// labelsJSON are the labels as webhook payloads show them, by title.
func (m *mergeRequest) labelsJSON(g *GitLab) []object {
	out := []object{}
	for _, name := range slices.Sorted(slices.Values(m.labels)) {
		out = append(out, maps.Clone(m.target.label(g, name)))
	}
	return out
}

// label is a label of the project, made known when first used.
func (p *project) label(g *GitLab, name string) object {
	if p.labels[name] == 0 {
		p.labels[name] = g.core.NextID()
	}
	return object{
		"id": p.labels[name], "title": name, "color": "#6699cc", "project_id": p.id, "created_at": hookStamp(p.created),
		"updated_at": hookStamp(p.created), "template": false, "description": nil, "type": "ProjectLabel",
		"group_id": nil, "lock_on_merge": false,
	}
}
