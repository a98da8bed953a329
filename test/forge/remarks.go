// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"cmp"
	"time"
)

// commitComment is a comment on a commit.
type commitComment struct {
	id   int64
	repo *repo
	sha  string
	by   *account
	body string
	at   time.Time
}

// CommitComment writes a comment on a commit that the repository shows and
// returns its ID. GitHub lets everybody who can read the repository write one.
func (g *GitHub) CommitComment(repo, sha, user, body string) int64 {
	defer g.lock()()
	r := g.mustRepo(repo)
	if o := r.db[sha]; o == nil || o.Commit == nil {
		invalidUse("CommitComment: no commit %s in %s", sha, repo)
	}
	mustBeTaken("CommitComment", body)
	m := &commitComment{g.core.NextID(), r, sha, g.userOf(user), body, g.happened(r)}
	g.remarks = append(g.remarks, m)
	g.core.Notify()
	return m.id
}

// CommitCommentDelivery builds a commit_comment event as it stands, without sending it. GitHub
// tells of new comments only: Action is for tests that expect what it does not do.
func (g *GitHub) CommitCommentDelivery(e CommentEvent) Delivery {
	defer g.lock()()
	r := g.mustRepo(e.Repo)
	var m *commitComment
	for _, known := range g.remarks {
		if known.repo == r && known.id == e.ID {
			m = known
		}
	}
	if m == nil {
		invalidUse("CommitCommentDelivery: no comment %d in %s", e.ID, e.Repo)
	}
	sender := m.by
	if e.Sender != "" {
		sender = g.userOf(e.Sender)
	}
	in := g.coveringInstallation(e.AppID, r)
	body := object{"action": cmp.Or(e.Action, "created"), "comment": m.json(g)}
	g.common(body, r, sender, in)
	return g.deliver(in.app, "commit_comment", body)
}

// json is a comment on a commit as a whole: position, line and path are of one on a line.
func (m *commitComment) json(g *GitHub) object {
	self := m.repo.api(g) + "/comments/" + itoa(m.id)
	at := m.at.Format(time.RFC3339)
	return object{
		"url": self, "html_url": m.repo.html(g) + "/commit/" + m.sha + "#commitcomment-" + itoa(m.id), "id": m.id,
		"node_id": nodeID("CC", m.id),
		"user":    m.by.json(g), "position": nil, "line": nil, "path": nil, "commit_id": m.sha, "created_at": at,
		"updated_at":         at,
		"author_association": (&pull{base: m.repo, user: m.by}).association(), "body": m.body, "reactions": reactions(self),
	}
}
