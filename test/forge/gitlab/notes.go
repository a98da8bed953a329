// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// What a note is on, in GitLab's own spelling.
const (
	notedID   = "noteable_id"   //nolint:misspell // GitLab's spelling
	notedIID  = "noteable_iid"  //nolint:misspell // GitLab's spelling
	notedType = "noteable_type" //nolint:misspell // GitLab's spelling
)

// maxNote is the most characters of a note.
const maxNote = 1_000_000

// maxNotes is the most comments of a merge request.
const maxNotes = 5000

// note is a comment on a merge request or, with a SHA, on a commit.
type note struct {
	id      int64
	project *project
	mr      *mergeRequest
	sha     string
	by      *user
	body    string
	system  bool
	created time.Time
	updated time.Time
	edits   int
}

// Note is a comment as a test sees it.
type Note struct {
	ID     int64
	Author string
	Body   string
	System bool // written by GitLab itself, such as "added 1 commits"
	Edits  int
}

// Notes lists the comments on a merge request, oldest first; those of GitLab
// itself only if system is asked for.
func (s *State) Notes(project string, iid int64, system bool) []Note {
	m := s.g.mustProject(project).mr(iid)
	if m == nil {
		invalidUse("Notes: no merge request %s!%d", project, iid)
	}
	var out []Note
	for _, n := range s.g.notesOf(m, system) {
		out = append(out, Note{n.id, n.by.username, n.body, n.system, n.edits})
	}
	return out
}

// Notes is State.Notes without those of GitLab itself.
func (g *GitLab) Notes(project string, iid int64) []Note {
	return locked(g, func(s *State) []Note { return s.Notes(project, iid, false) })
}

// notesOf lists a merge request's notes, oldest first.
func (g *GitLab) notesOf(m *mergeRequest, system bool) []*note {
	var out []*note
	for _, n := range g.notes {
		if n.mr == m && (system || !n.system) {
			out = append(out, n)
		}
	}
	return out
}

// AddNote comments on a merge request and returns the note's id.
func (g *GitLab) AddNote(project string, iid int64, username, body string) int64 {
	var id int64
	g.changeMR(project, iid, username, func(m *mergeRequest, by *user) {
		id = g.addNote(&note{project: m.target, mr: m, by: by, body: body}).id
	})
	return id
}

// DeleteNote deletes a note of a merge request as a user with the right.
func (g *GitLab) DeleteNote(project string, iid, id int64) {
	g.changeMR(project, iid, "octocat", func(m *mergeRequest, _ *user) {
		g.notes = slices.DeleteFunc(g.notes, func(n *note) bool { return n.mr == m && n.id == id })
	})
}

// AddCommitNote comments on a commit and returns the note's id.
func (g *GitLab) AddCommitNote(project, sha, username, body string) int64 {
	defer g.act(project)()
	p := g.mustProject(project)
	if p.db.Commit(sha) == nil {
		invalidUse("AddCommitNote: no commit %s in %s", sha, project)
	}
	return g.addNote(&note{project: p, sha: sha, by: g.userOf(username), body: body}).id
}

func (g *GitLab) systemNote(m *mergeRequest, by *user, body string) {
	g.addNote(&note{project: m.target, mr: m, by: by, body: body, system: true})
}

func (g *GitLab) addNote(n *note) *note {
	n.id, n.created, n.updated = g.core.NextID(), g.now(), g.now()
	g.notes = append(g.notes, n)
	g.core.Notify()
	return n
}

func (n *note) json(g *GitLab) object {
	return object{
		"id": n.id, "type": nil, "body": n.body, "attachment": nil, "author": n.by.json(g), "created_at": stamp(n.created),
		"updated_at": stamp(n.updated), "system": n.system, notedID: n.mr.id, notedType: "MergeRequest",
		"project_id": n.project.id, "resolvable": false, "confidential": false, "internal": false, "imported": false,
		notedIID: n.mr.iid, "commands_changes": object{},
	}
}

// notable is the merge request whose notes the path means.
func (c *call) notable() *mergeRequest {
	m := c.project.mr(c.number("iid"))
	if m == nil {
		panic(traffic.Refuse(notFound("MergeRequest")))
	}
	return m
}

// noteOfPath is the note that {note} means.
func (c *call) noteOfPath() *note {
	m := c.notable()
	for _, n := range c.g.notesOf(m, true) {
		if n.id == c.number("note") {
			return n
		}
	}
	panic(traffic.Refuse(noRecord()))
}

func listNotes(c *call) answer {
	m := c.notable()
	by := c.order("created_at", "desc", "updated_at")
	list := c.g.notesOf(m, c.text("activity_filter") != "only_comments")
	slices.SortStableFunc(list, func(a, b *note) int {
		if d := a.updated.Compare(b.updated); by.column == "updated_at" && d != 0 {
			return d
		}
		return cmp.Compare(a.id, b.id)
	})
	if by.desc {
		slices.Reverse(list)
	}
	return paged(c, list, func(n *note) object { return n.json(c.g) })
}

func getNote(c *call) answer {
	n := c.noteOfPath()
	return ok(n.json(c.g))
}

func createNote(c *call) answer {
	if _, given := c.params["body"]; !given {
		return badParameter("body is missing")
	}
	m := c.notable()
	if m.locked && c.project.levelOf(c.user) == NoAccess {
		return forbidden()
	}
	c.checkNote()
	if len(c.g.notesOf(m, false)) >= maxNotes {
		return refuse(http.StatusBadRequest, `400 Bad request - Note {:base=>["Maximum number of comments exceeded"]}`)
	}
	c.note = c.g.addNote(&note{project: c.project, mr: m, by: c.user, body: c.text("body")})
	return created(c.note.json(c.g))
}

func (c *call) checkNote() {
	why := ""
	switch body := c.text("body"); {
	case strings.TrimSpace(body) == "":
		why = "can't be blank"
	case len([]rune(body)) > maxNote:
		why = fmt.Sprintf("is too long (maximum is %d characters)", maxNote)
	default:
		return
	}
	panic(traffic.Refuse(refuse(http.StatusBadRequest, fmt.Sprintf(`400 Bad request - Note {:note=>[%q]}`, why))))
}

// mayEdit reports whether the caller may change a note: its author and the project's maintainers
// may.
func (c *call) mayEdit(n *note) bool {
	return !n.system && (n.by == c.user || c.project.levelOf(c.user) >= Maintainer)
}

func updateNote(c *call) answer {
	n := c.noteOfPath()
	if !c.mayEdit(n) {
		return forbidden()
	}
	body, given := c.params["body"]
	if given && body == "" {
		return badParameter("body is empty")
	}
	if given {
		c.checkNote()
		n.body, n.updated = c.text("body"), c.g.now()
		n.edits++
	}
	c.note = n
	return ok(n.json(c.g))
}

func deleteNote(c *call) answer {
	n := c.noteOfPath()
	if !c.mayEdit(n) {
		return forbidden()
	}
	c.g.notes = slices.DeleteFunc(c.g.notes, func(other *note) bool { return other == n })
	c.note = n
	return answer{Status: http.StatusNoContent}
}
