// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/gitdb"
)

// activity is a push as a project's events tell of it (https://docs.gitlab.com/api/events/). GitLab
// keeps one for each ref that was created, moved or deleted.
type activity struct {
	id       int64
	ref      string // full
	from, to string // gitdb.ZeroSHA for none
	by       *user
	when     time.Time
}

// updated notes a change of a full ref, for webhooks and events. The caller holds mu.
func (g *GitLab) updated(p *project, ref string, up refUpdate) {
	p.updates[ref] = up
	p.activities = append(p.activities,
		activity{id: g.core.NextID(), ref: ref, from: up.before, to: up.after, by: up.by, when: g.now()})
}

func (a activity) json(g *GitLab, p *project) object {
	kind, name := "branch", strings.TrimPrefix(a.ref, "refs/heads/")
	if tag, isTag := strings.CutPrefix(a.ref, "refs/tags/"); isTag {
		kind, name = "tag", tag
	}
	known := func(sha string) any {
		if sha == gitdb.ZeroSHA {
			return nil
		}
		return sha
	}
	done, count, subject := "pushed", 0, any(nil)
	switch {
	case a.to == gitdb.ZeroSHA:
		done = "removed"
	case a.from == gitdb.ZeroSHA:
		done = "created"
	}
	said := map[string]string{"pushed": "pushed to", "created": "pushed new", "removed": "deleted"}[done]
	if c := p.db.Commit(a.to); c != nil {
		count, subject = 1, title(c.Message)
	}
	return object{
		"id": a.id, "project_id": p.id, "action_name": said, "target_id": nil, "target_iid": nil, "target_type": nil,
		"target_title": nil, "author_id": a.by.id, "author": a.by.json(g), "author_username": a.by.username,
		"created_at": stamp(a.when),
		"imported":   false, "imported_from": "none",
		"push_data": object{
			"commit_count": count, "action": done, "ref_type": kind, "commit_from": known(a.from), "commit_to": known(a.to),
			"ref": name, "commit_title": subject, "ref_count": nil,
		},
	}
}

// listEvents tells of pushes only: the forge keeps no other activity.
func listEvents(c *call) answer {
	by := c.order("created_at", "desc", "created_at")
	var list []activity
	if action := c.text("action"); action == "" || action == "pushed" {
		list = slices.Clone(c.project.activities)
	}
	if by.desc {
		slices.Reverse(list)
	}
	return paged(c, list, func(a activity) object { return a.json(c.g, c.project) })
}

func getTag(c *call) answer {
	name := c.r.PathValue("tag")
	sha, found := c.project.tags[name]
	if !found {
		return notFound("Tag")
	}
	commit := c.project.commitJSON(c.g, c.project.db.Commit(sha))
	target := cmp.Or(c.project.annotated[name], sha)
	return ok(object{
		"name": name, "message": "", "target": target, "commit": commit, "release": nil, "protected": false,
		"created_at": nil,
	})
}

// listMRVersions lists the heads that a merge request had, newest first.
func listMRVersions(c *call) answer {
	m := c.mrOfPath()
	list := slices.Clone(m.heads)
	slices.Reverse(list)
	return paged(c, list, func(v version) object {
		return object{
			"id": v.id, "head_commit_sha": v.head, "base_commit_sha": m.base(), "start_commit_sha": m.start(),
			"created_at":       stamp(v.when),
			"merge_request_id": m.id, "state": "collected", "real_size": "1", "patch_id_sha": nil,
		}
	})
}

// version is a head of a merge request.
type version struct {
	id   int64
	head string
	when time.Time
}

// moveHead gives a merge request another head. The caller holds mu.
func (m *mergeRequest) moveHead(g *GitLab, sha string) {
	if m.head == sha && len(m.heads) > 0 {
		return
	}
	m.head = sha
	m.heads = append(m.heads, version{g.core.NextID(), sha, g.now()})
}
