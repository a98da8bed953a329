// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"maps"

	"github.com/plumbline-ci/plumbline/test/forge/internal/gitdb"
)

// Deleted as a file's content in Change.Files removes the file.
const Deleted = gitdb.Deleted

// Change is a commit to be made.
type Change = gitdb.Change

// Commit makes a commit and pushes it to the branch, which it creates if need
// be. Open pull requests from the branch follow. It returns the SHA, which is
// that of git for the same content, time and parents.
func (g *GitHub) Commit(repo, branch string, ch Change) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.mustRepo(repo)
	author := g.userOf(orDefault(ch.Author, "octocat"))
	parent := orDefault(ch.Parent, r.branches[branch])
	parent = orDefault(parent, r.branches[r.defaultBranch])
	if ch.Orphan {
		parent = ""
	}
	ch.Message = orDefault(ch.Message, "change")
	sha, err := r.db.Apply(ch, parent, author.person(), g.now())
	if err != nil {
		mistake("Commit: %v in %s", err, repo)
	}
	g.moveBranch(r, branch, sha, author)
	return sha
}

// moveBranch sets a branch to a commit and lets the pull requests follow.
func (g *GitHub) moveBranch(r *repo, branch, sha string, by *account) {
	before := orDefault(r.branches[branch], zeroSHA)
	forced := before != zeroSHA && r.db.MergeBase(before, sha) != before
	r.branches[branch] = sha
	r.updates["refs/heads/"+branch] = refUpdate{before: before, after: sha, by: by, forced: forced}
	for _, base := range g.repos {
		for _, p := range base.pulls {
			if p.state == "open" && p.head == r && p.headRef == branch {
				p.before, p.headSHA = p.headSHA, sha
				p.updated = g.now()
				base.db.Take(r.db, sha)
			}
		}
	}
	g.notify()
}

// SetBranch moves or creates a branch, as a push of commits that exist.
func (g *GitHub) SetBranch(repo, branch, sha, user string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.mustRepo(repo)
	if o := r.db[sha]; o == nil || o.Commit == nil {
		mistake("SetBranch: no commit %s in %s", sha, repo)
	}
	g.moveBranch(r, branch, sha, g.userOf(user))
}

// DeleteBranch deletes a branch; its commits stay.
func (g *GitHub) DeleteBranch(repo, branch, user string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.mustRepo(repo)
	sha, found := r.branches[branch]
	if !found {
		mistake("DeleteBranch: no branch %s in %s", branch, repo)
	}
	delete(r.branches, branch)
	r.updates["refs/heads/"+branch] = refUpdate{before: sha, after: zeroSHA, by: g.userOf(user)}
	g.notify()
}

// CreateTag creates or moves a lightweight tag on a commit.
func (g *GitHub) CreateTag(repo, tag, sha, user string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.mustRepo(repo)
	if o := r.db[sha]; o == nil || o.Commit == nil {
		mistake("CreateTag: no commit %s in %s", sha, repo)
	}
	before := orDefault(r.tags[tag], zeroSHA)
	r.tags[tag] = sha
	delete(r.annotated, tag)
	r.updates["refs/tags/"+tag] = refUpdate{before: before, after: sha, by: g.userOf(user)}
	g.notify()
}

// Annotate makes a tag that there is an annotated one: the ref points to a
// tag object, whose id it returns, and that to the commit. Its push events stay
// those of a lightweight one.
func (g *GitHub) Annotate(repo, tag string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.mustRepo(repo)
	if r.tags[tag] == "" {
		mistake("Annotate: no tag %s in %s", tag, repo)
	}
	r.annotated[tag] = gitdb.TagID(tag, r.tags[tag])
	return r.annotated[tag]
}

// DeleteTag deletes a tag.
func (g *GitHub) DeleteTag(repo, tag, user string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.mustRepo(repo)
	sha, found := r.tags[tag]
	if !found {
		mistake("DeleteTag: no tag %s in %s", tag, repo)
	}
	delete(r.tags, tag)
	r.updates["refs/tags/"+tag] = refUpdate{before: sha, after: zeroSHA, by: g.userOf(user)}
	g.notify()
}

// Branches returns the heads of a repository's branches.
func (g *GitHub) Branches(repo string) map[string]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.mustRepo(repo).branches)
}
