// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

type comment struct {
	id      int64
	repo    *repo
	pull    int64
	by      *account
	body    string
	at      time.Time
	updated time.Time
	edits   int
}

// Comment is a comment on a pull request's conversation as a test sees it.
type Comment struct {
	ID     int64
	Author string
	Body   string
	Edits  int
}

// Comments lists the comments on a pull request, oldest first.
func (g *GitHub) Comments(repo string, number int) []Comment {
	defer g.lock()()
	var out []Comment
	for _, m := range g.commentsOf(g.mustRepo(repo), int64(number)) {
		out = append(out, Comment{m.id, m.by.login, m.body, m.edits})
	}
	return out
}

func (g *GitHub) commentsOf(r *repo, number int64) (list []*comment) {
	for _, m := range g.comments {
		if m.repo == r && m.pull == number {
			list = append(list, m)
		}
	}
	return list
}

// LockPull locks a pull request's conversation, or unlocks it.
func (g *GitHub) LockPull(repo string, number int, locked bool) {
	g.changePull(repo, number, func(p *pull) { p.locked = locked })
}

// DeleteComment deletes a comment as a user with the right.
func (g *GitHub) DeleteComment(repo string, id int64) {
	defer g.lock()()
	r := g.mustRepo(repo)
	for i, m := range g.comments {
		if m.repo == r && m.id == id {
			g.comments = append(g.comments[:i:i], g.comments[i+1:]...)
			g.core.Notify()
			return
		}
	}
	invalidUse("DeleteComment: no comment %d in %s", id, repo)
}

// bot is the account in whose name the caller writes: the user's whose token it is, or the App's.
func (c *call) bot() *account {
	if c.token != nil && c.token.user != nil {
		return c.token.user
	}
	return c.g.accountOf(c.app.Slug+"[bot]", "Bot")
}

// commentBody is the text that is to be written, or why it is refused.
func (c *call) commentBody() string {
	var req struct{ Body *string }
	var refusal answer
	switch err := c.decode(&req); {
	case err != nil:
		refusal = c.problemsParsing()
	case req.Body == nil:
		refusal = invalidRequest(c.rt.doc, []string{`"body" wasn't supplied.`})
	case strings.TrimSpace(*req.Body) == "":
		refusal = validationFailed(c.rt.doc, fieldError{"IssueComment", "missing_field", "body", ""})
	case utf8.RuneCountInString(*req.Body) > maxComment:
		refusal = validationFailed(c.rt.doc, fieldError{
			"IssueComment", "unprocessable", "data", fmt.Sprintf("Body is too long (maximum is %d characters)", maxComment),
		})
	default:
		return *req.Body
	}
	panic(traffic.Refuse(refusal))
}

// createComment answers a comment on a pull request's conversation.
func createComment(c *call) answer {
	p := c.pull()
	body := c.commentBody()
	if p.locked && !c.pushes() { // users with write access may comment
		return refuse(http.StatusForbidden, "https://docs.github.com/articles/locking-conversations/",
			"Unable to create comment because issue is locked.")
	}
	now := c.g.now()
	m := &comment{
		id: c.g.core.NextID(), repo: c.repo, pull: int64(p.number), by: c.bot(), body: body, at: now, updated: now,
	}
	c.g.comments = append(c.g.comments, m)
	return created(m.json(c.g))
}

// updateComment edits a comment of the App's own.
func updateComment(c *call) answer {
	for _, m := range c.g.comments {
		if m.repo != c.repo || m.id != c.number("id") {
			continue
		}
		if m.by != c.bot() {
			return c.notAccessible()
		}
		body := c.commentBody()
		m.body, m.updated = body, c.g.now()
		m.edits++
		return ok(m.json(c.g))
	}
	return notFound(c.rt.doc)
}

func listComments(c *call) answer {
	return listed(c, c.g.commentsOf(c.repo, int64(c.pull().number)), (*comment).json)
}

func (m *comment) json(g *GitHub) object {
	return object{"id": m.id, "body": m.body, "user": m.by.json(g), "created_at": m.at.Format(time.RFC3339),
		"updated_at": m.updated.Format(time.RFC3339),
		"html_url":   m.repo.html(g) + "/pull/" + itoa(m.pull) + "#issuecomment-" + itoa(m.id)}
}
