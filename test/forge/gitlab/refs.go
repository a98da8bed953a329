// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"fmt"
	"maps"

	"github.com/plumbline-ci/plumbline/test/forge/internal/gitdb"
)

// Deleted as a file's content in Change.Files removes the file.
const Deleted = gitdb.Deleted

// Change is a commit to be made.
type Change = gitdb.Change

// Commit makes a commit and pushes it to the branch, which it creates if need
// be. Open merge requests from the branch follow. It returns the SHA, which is
// that of git for the same content, time and parents.
func (g *GitLab) Commit(project, branch string, ch Change) string {
	defer g.act(project)()
	p := g.mustProject(project)
	author := g.userOf(orDefault(ch.Author, "octocat"))
	parent := orDefault(ch.Parent, p.branches[branch])
	parent = orDefault(parent, p.branches[p.defaultBranch])
	ch.Message = orDefault(ch.Message, "change")
	sha, err := p.db.Apply(ch, parent, author.person(), g.now())
	if err != nil {
		mistake("Commit: %v in %s", err, project)
	}
	g.moveBranch(p, branch, sha, author)
	return sha
}

// moveBranch sets a branch to a commit and lets the merge requests follow.
func (g *GitLab) moveBranch(p *project, branch, sha string, by *user) {
	before := orDefault(p.branches[branch], gitdb.ZeroSHA)
	p.branches[branch] = sha
	g.updated(p, "refs/heads/"+branch, refUpdate{before: before, after: sha, by: by})
	for _, target := range g.projects {
		for _, m := range target.mrs {
			if m.state == "opened" && m.source == p && m.sourceBranch == branch && m.head != sha {
				target.db.Take(p.db, sha)
				oldrev := m.head
				m.moveHead(g, sha)
				n := len(target.db.Between(oldrev, sha))
				g.systemNote(m, by, fmt.Sprintf("added %d commits", n))
				m.changed(g, "update", by, object{})
				m.last.oldrev = oldrev
			}
		}
	}
	g.notify()
}

// SetBranch moves or creates a branch, as a push of commits that exist.
func (g *GitLab) SetBranch(project, branch, sha, username string) {
	defer g.act(project)()
	p := g.mustProject(project)
	if p.db.Commit(sha) == nil {
		mistake("SetBranch: no commit %s in %s", sha, project)
	}
	g.moveBranch(p, branch, sha, g.userOf(username))
}

// DeleteBranch deletes a branch; its commits stay.
func (g *GitLab) DeleteBranch(project, branch, username string) {
	defer g.act(project)()
	p := g.mustProject(project)
	g.deleteRef(p, p.branches, "refs/heads/", branch, username)
}

// CreateTag creates or moves a lightweight tag on a commit.
func (g *GitLab) CreateTag(project, tag, sha, username string) {
	defer g.act(project)()
	p := g.mustProject(project)
	if p.db.Commit(sha) == nil {
		mistake("CreateTag: no commit %s in %s", sha, project)
	}
	before := orDefault(p.tags[tag], gitdb.ZeroSHA)
	p.tags[tag] = sha
	delete(p.annotated, tag)
	g.updated(p, "refs/tags/"+tag, refUpdate{before: before, after: sha, by: g.userOf(username)})
	g.notify()
}

// Annotate makes a tag that there is an annotated one: it targets a tag object,
// whose id it returns, and that the commit. Its push events stay those of a
// lightweight one.
func (g *GitLab) Annotate(project, tag string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.mustProject(project)
	if p.tags[tag] == "" {
		mistake("Annotate: no tag %s in %s", tag, project)
	}
	p.annotated[tag] = gitdb.TagID(tag, p.tags[tag])
	return p.annotated[tag]
}

// DeleteTag deletes a tag.
func (g *GitLab) DeleteTag(project, tag, username string) {
	defer g.act(project)()
	p := g.mustProject(project)
	g.deleteRef(p, p.tags, "refs/tags/", tag, username)
}

func (g *GitLab) deleteRef(p *project, refs map[string]string, under, name, username string) {
	sha, found := refs[name]
	if !found {
		mistake("no %s%s in %s", under, name, p.path)
	}
	delete(refs, name)
	g.updated(p, under+name, refUpdate{before: sha, after: gitdb.ZeroSHA, by: g.userOf(username)})
	g.notify()
}

// Branches returns the heads of a project's branches.
func (g *GitLab) Branches(project string) map[string]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.mustProject(project).branches)
}
