// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/gitdb"
)

type mergeRequest struct {
	id           int64
	iid          int64
	target       *project
	targetBranch string
	source       *project
	sourceBranch string
	head         string
	heads        []version
	author       *user
	title        string
	description  string
	state        string // opened, closed, merged
	labels       []string
	merged       string // the merge commit
	created      time.Time
	updated      time.Time
	closed       time.Time
	last         lastChange
	states       []resourceEvent
	labelEvents  []resourceEvent
	locked       bool // its discussion
}

// lastChange is what a merge request hook tells of.
type lastChange struct {
	action  string
	by      *user
	oldrev  string
	changes object
}

// draftPrefix is how GitLab itself marks a draft.
const draftPrefix = "Draft: "

// draftTitle is what makes a merge request a draft.
var draftTitle = regexp.MustCompile(`^(?i)(\[draft\]|\(draft\)|draft:)`)

func (m *mergeRequest) draft() bool { return draftTitle.MatchString(m.title) }

// NewMergeRequest is a merge request to be opened.
type NewMergeRequest struct {
	Target       string // full path
	TargetBranch string // empty is the default branch
	Source       string // full path of a fork; empty is Target
	SourceBranch string
	Author       string
	Title        string
	Description  string
	Draft        bool
	Labels       []string
}

// OpenMergeRequest opens a merge request and returns its iid. From then on the
// target project knows the source's commits.
func (g *GitLab) OpenMergeRequest(n NewMergeRequest) int64 {
	defer g.act(n.Target)()
	target := g.mustProject(n.Target)
	source := g.mustProject(cmp.Or(n.Source, n.Target))
	sha, found := source.branches[n.SourceBranch]
	if !found {
		invalidUse("OpenMergeRequest: no branch %q in %s", n.SourceBranch, source.path)
	}
	branch := cmp.Or(n.TargetBranch, target.defaultBranch)
	if target.branches[branch] == "" {
		invalidUse("OpenMergeRequest: no branch %q in %s", branch, n.Target)
	}
	target.db.Take(source.db, sha)
	m := &mergeRequest{
		id: g.core.NextID(), iid: int64(len(target.mrs) + 1), target: target, targetBranch: branch, source: source,
		sourceBranch: n.SourceBranch, author: g.userOf(cmp.Or(n.Author, "octocat")), state: "opened",
		title: cmp.Or(n.Title, n.SourceBranch), description: n.Description, labels: slices.Clone(n.Labels),
		created: g.now(), updated: g.now(),
	}
	if n.Draft {
		m.title = draftPrefix + m.title
	}
	m.moveHead(g, sha)
	m.relabelled(g, m.author, nil)
	target.mrs = append(target.mrs, m)
	m.changed(g, "open", m.author, object{"merge_status": fromTo("preparing", "unchecked")})
	g.core.Notify()
	return m.iid
}

func fromTo(previous, current any) object { return object{"previous": previous, "current": current} }

// changed records what happened, for the hook that tells of it.
func (m *mergeRequest) changed(g *GitLab, action string, by *user, changes object) {
	was := m.updated
	m.updated = g.now()
	changes["updated_at"] = fromTo(hookStamp(was), hookStamp(m.updated))
	m.last = lastChange{action: action, by: by, changes: changes}
}

func (g *GitLab) changeMR(project string, iid int64, username string, change func(m *mergeRequest, by *user)) {
	defer g.act(project)()
	m := g.mustProject(project).mr(iid)
	if m == nil {
		invalidUse("no merge request %s!%d", project, iid)
	}
	change(m, g.userOf(username))
	g.core.Notify()
}

// CloseMergeRequest closes a merge request without merging it.
func (g *GitLab) CloseMergeRequest(project string, iid int64, username string) {
	g.changeMR(project, iid, username, func(m *mergeRequest, by *user) {
		m.state, m.closed = "closed", g.now()
		m.became(g, by, "closed")
		m.changed(g, "close", by, object{"state_id": fromTo(1, 2)})
	})
}

// ReopenMergeRequest opens a closed merge request again; its head is the branch's.
func (g *GitLab) ReopenMergeRequest(project string, iid int64, username string) {
	g.changeMR(project, iid, username, func(m *mergeRequest, by *user) {
		m.state, m.closed = "opened", time.Time{}
		m.became(g, by, "reopened")
		if sha := m.source.branches[m.sourceBranch]; sha != "" {
			m.target.db.Take(m.source.db, sha)
			m.moveHead(g, sha)
		}
		m.changed(g, "reopen", by, object{"state_id": fromTo(2, 1)})
	})
}

// RetitleMergeRequest changes the title; "Draft: " at its start makes it a draft.
func (g *GitLab) RetitleMergeRequest(project string, iid int64, username, title string) {
	g.UpdateMergeRequest(project, iid, username, MergeRequestUpdate{Title: &title})
}

// LockMergeRequest locks a merge request's discussion, or unlocks it.
func (g *GitLab) LockMergeRequest(project string, iid int64, username string, locked bool) {
	g.changeMR(project, iid, username, func(m *mergeRequest, _ *user) { m.locked = locked })
}

// ReadyMergeRequest ends a merge request's draft.
func (g *GitLab) ReadyMergeRequest(project string, iid int64, username string) {
	g.changeMR(project, iid, username, func(m *mergeRequest, by *user) {
		m.update(g, by, MergeRequestUpdate{Title: ptr(strings.TrimPrefix(m.title, draftPrefix))})
	})
}

// SetLabels replaces the labels of a merge request.
func (g *GitLab) SetLabels(project string, iid int64, username string, labels ...string) {
	g.UpdateMergeRequest(project, iid, username, MergeRequestUpdate{Labels: &labels})
}

func ptr[T any](v T) *T { return &v }

// MergeRequestUpdate is what is changed at once, as a page that is saved does;
// nil leaves a field as it is.
type MergeRequestUpdate struct {
	Title, Description, TargetBranch *string
	Labels                           *[]string
}

// UpdateMergeRequest changes a merge request, and sends one event.
func (g *GitLab) UpdateMergeRequest(project string, iid int64, username string, u MergeRequestUpdate) {
	g.changeMR(project, iid, username, func(m *mergeRequest, by *user) { m.update(g, by, u) })
}

func (m *mergeRequest) update(g *GitLab, by *user, u MergeRequestUpdate) {
	changes, wasDraft := object{}, m.draft()
	for name, field := range map[string]struct{ is, to *string }{
		"title": {&m.title, u.Title}, "description": {&m.description, u.Description},
		"target_branch": {&m.targetBranch, u.TargetBranch},
	} {
		if field.to != nil && *field.to != *field.is {
			changes[name], *field.is = fromTo(*field.is, *field.to), *field.to
		}
	}
	if changes["target_branch"] != nil { // GitLab compares the same head anew
		m.heads = append(m.heads, version{g.core.NextID(), m.head, g.now()})
	}
	if m.draft() != wasDraft && !g.opts.NoDraftChange {
		changes["draft"] = fromTo(wasDraft, m.draft())
	}
	if u.Labels != nil {
		before, was := m.labelsJSON(g), m.labels
		m.labels = slices.Clone(*u.Labels)
		m.relabelled(g, by, was)
		changes["labels"] = fromTo(before, m.labelsJSON(g))
	}
	m.changed(g, "update", by, changes)
}

// Merge merges a merge request with a merge commit and returns its SHA.
func (g *GitLab) Merge(project string, iid int64, username string) string {
	sha := ""
	g.changeMR(project, iid, username, func(m *mergeRequest, by *user) {
		db, base := m.target.db, m.target.branches[m.targetBranch]
		sha = db.PutCommit(gitdb.Commit{
			Message: "Merge branch '" + m.sourceBranch + "' into '" + m.targetBranch + "'\n\n" + m.title +
				"\n\nSee merge request " + m.target.path + "!" + itoa(m.iid),
			Parents: []string{base, m.head}, Author: by.person(), When: g.now(),
			Tree: db.Merged(db.Commit(base).Tree, m.changes()),
		})
		m.merged, m.state, m.closed = sha, "merged", g.now()
		m.became(g, by, "merged")
		m.changed(g, "merge", by, object{"state_id": fromTo(1, 3)})
		g.target(m.target).Move(m.targetBranch, sha, by.username)
	})
	return sha
}

// start is the target branch's head, or where it was merged into.
func (m *mergeRequest) start() string {
	if m.merged != "" {
		return m.target.db.Commit(m.merged).Parents[0]
	}
	return m.target.branches[m.targetBranch]
}

func (m *mergeRequest) base() string { return m.target.db.MergeBase(m.start(), m.head) }

// changes are the files changed since the head left the target.
func (m *mergeRequest) changes() []gitdb.FileChange {
	from := ""
	if c := m.target.db.Commit(m.base()); c != nil {
		from = c.Tree
	}
	return m.target.db.Diff(from, m.target.db.Commit(m.head).Tree)
}

func (m *mergeRequest) commits() []*gitdb.Commit { return m.target.db.Between(m.start(), m.head) }

func (p *project) mr(iid int64) *mergeRequest {
	if iid < 1 || iid > int64(len(p.mrs)) {
		return nil
	}
	return p.mrs[iid-1]
}
