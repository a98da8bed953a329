// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"cmp"
	"strings"
	"unicode/utf8"
)

// maxComment is how many characters a comment may have.
const maxComment = 65536

// CommentEvent says which issue_comment event to tell of.
type CommentEvent struct {
	Repo string
	// ID is the comment's, as Comment returned it.
	ID int64
	// Action is created, edited or deleted; empty is created.
	Action string
	AppID  int64
	// Sender defaults to who wrote it.
	Sender string
}

// Comment writes a comment on a pull request's conversation and returns its ID. Who may write one
// is not checked.
func (g *GitHub) Comment(repo string, number int, user, body string) int64 {
	defer g.lock()()
	r := g.mustRepo(repo)
	if r.pull(int64(number)) == nil {
		invalidUse("Comment: no pull request %s#%d", repo, number)
	}
	mustBeTaken("Comment", body)
	now := g.happened(r)
	m := &comment{id: g.core.NextID(), repo: r, pull: int64(number), by: g.userOf(user), body: body, at: now, updated: now}
	g.comments = append(g.comments, m)
	g.core.Notify()
	return m.id
}

// mustBeTaken is for what GitHub would refuse to store as a comment.
func mustBeTaken(by, body string) {
	if strings.TrimSpace(body) == "" || utf8.RuneCountInString(body) > maxComment {
		invalidUse("%s: GitHub takes 1 to %d characters", by, maxComment)
	}
}

// CommentDelivery builds an issue_comment event as it stands, without sending it.
func (g *GitHub) CommentDelivery(e CommentEvent) Delivery {
	defer g.lock()()
	r := g.mustRepo(e.Repo)
	var m *comment
	for _, known := range g.comments {
		if known.repo == r && known.id == e.ID {
			m = known
		}
	}
	if m == nil {
		invalidUse("CommentDelivery: no comment %d in %s", e.ID, e.Repo)
	}
	sender := m.by
	if e.Sender != "" {
		sender = g.userOf(e.Sender)
	}
	in := g.coveringInstallation(e.AppID, r)
	p := r.pull(m.pull)
	body := object{"action": cmp.Or(e.Action, "created"), "issue": p.issue(g), "comment": m.full(g, p)}
	g.common(body, r, sender, in)
	return g.deliver(in.app, "issue_comment", body)
}

// issue is a pull request as the events of its conversation show it: no commit and no branch.
func (p *pull) issue(g *GitHub) object {
	pull := p.json(g)
	self := p.base.api(g) + "/issues/" + itoa(int64(p.number))
	comments := len(g.commentsOf(p.base, int64(p.number)))
	o := object{
		"url": self, "repository_url": p.base.api(g), "labels_url": self + "/labels{/name}",
		"comments_url": self + "/comments",
		"events_url":   self + "/events", "timeline_url": self + "/timeline", "html_url": pull["html_url"],
		"node_id": nodeID("PR", p.id), "comments": comments, "reactions": reactions(self),
		"assignee": nil, "milestone": nil, "active_lock_reason": nil, "performed_via_github_app": nil, "state_reason": nil,
		"pull_request": object{"url": pull["url"], "html_url": pull["html_url"], "diff_url": pull["diff_url"],
			"patch_url": p.base.html(g) + "/pull/" + itoa(int64(p.number)) + ".patch", "merged_at": pull["merged_at"]},
	}
	for _, same := range []string{"id", "number", "title", "body", "user", "labels", "state", "locked", "assignees",
		"draft",
		"created_at", "updated_at", "closed_at", "author_association"} {
		o[same] = pull[same]
	}
	return o
}

// full adds what only the events carry.
func (m *comment) full(g *GitHub, p *pull) object {
	o := m.json(g)
	self := m.repo.api(g) + "/issues/comments/" + itoa(m.id)
	o["url"], o["issue_url"] = self, m.repo.api(g)+"/issues/"+itoa(m.pull)
	o["node_id"], o["reactions"], o["performed_via_github_app"] = nodeID("IC", m.id), reactions(self), nil
	o["author_association"] = (&pull{base: p.base, user: m.by}).association()
	return o
}

func reactions(of string) object {
	return object{"url": of + "/reactions", "total_count": 0, "+1": 0, "-1": 0, "laugh": 0, "hooray": 0, "confused": 0,
		"heart": 0, "rocket": 0, "eyes": 0}
}
