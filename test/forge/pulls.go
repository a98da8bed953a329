// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"cmp"
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/gitdb"
)

type pull struct {
	id      int64
	number  int
	base    *repo
	baseRef string
	head    *repo
	headRef string
	headSHA string
	before  string // the head before the last push to it
	user    *account
	title   string
	body    string
	state   string
	draft   bool
	locked  bool
	merged  string // the merge commit
	labels  []string
	created time.Time
	updated time.Time
	closed  *time.Time
}

// NewPull is a pull request to be opened.
type NewPull struct {
	Base       string // owner/name
	BaseBranch string // empty is the default branch
	Head       string // owner/name of a fork; empty is Base
	HeadBranch string
	Author     string
	Title      string
	Body       string
	Draft      bool
}

// OpenPullRequest opens a pull request and returns its number.
func (g *GitHub) OpenPullRequest(n NewPull) int {
	defer g.lock()()
	base := g.mustRepo(n.Base)
	head := g.mustRepo(cmp.Or(n.Head, n.Base))
	sha, found := head.branches[n.HeadBranch]
	if !found {
		invalidUse("OpenPullRequest: no branch %q in %s", n.HeadBranch, head.fullName())
	}
	ref := cmp.Or(n.BaseBranch, base.defaultBranch)
	if base.branches[ref] == "" {
		invalidUse("OpenPullRequest: no branch %q in %s", ref, n.Base)
	}
	base.db.Take(head.db, sha)
	p := &pull{
		id: g.core.NextID(), number: len(base.pulls) + 1, base: base, baseRef: ref, head: head, headRef: n.HeadBranch,
		headSHA: sha, user: g.userOf(cmp.Or(n.Author, "octocat")), state: "open", draft: n.Draft,
		title: cmp.Or(n.Title, n.HeadBranch), body: n.Body, created: g.now(), updated: g.now(),
	}
	base.pulls = append(base.pulls, p)
	g.core.Notify()
	return p.number
}

func (g *GitHub) changePull(repo string, number int, change func(*pull)) {
	defer g.lock()()
	p := g.mustRepo(repo).pull(int64(number))
	if p == nil {
		invalidUse("no pull request %s#%d", repo, number)
	}
	change(p)
	p.updated = g.now()
	g.core.Notify()
}

// ClosePull closes a pull request without merging it.
func (g *GitHub) ClosePull(repo string, number int) {
	g.changePull(repo, number, func(p *pull) { p.close(g.now()) })
}

// ReopenPull opens a closed pull request again; its head is the branch's.
func (g *GitHub) ReopenPull(repo string, number int) {
	g.changePull(repo, number, func(p *pull) {
		p.state, p.closed = "open", nil
		if sha := p.head.branches[p.headRef]; sha != "" {
			p.base.db.Take(p.head.db, sha)
			p.headSHA = sha
		}
	})
}

// ReadyPull ends a pull request's draft.
func (g *GitHub) ReadyPull(repo string, number int) {
	g.changePull(repo, number, func(p *pull) { p.draft = false })
}

// LabelPull adds a label.
func (g *GitHub) LabelPull(repo string, number int, label string) {
	g.changePull(repo, number, func(p *pull) {
		if !slices.Contains(p.labels, label) {
			p.labels = append(p.labels, label)
		}
	})
}

// MergePull merges a pull request with a merge commit by user and returns its SHA.
func (g *GitHub) MergePull(repo string, number int, user string) string {
	sha := ""
	g.changePull(repo, number, func(p *pull) {
		db := p.base.db
		by := g.userOf(user)
		sha = db.PutCommit(gitdb.Commit{
			Message: "Merge pull request #" + itoa(int64(number)) + " from " + p.head.owner.login + "/" + p.headRef,
			Parents: []string{p.base.branches[p.baseRef], p.headSHA}, Author: by.person(), When: g.now(),
			Tree: p.mergedTree(),
		})
		p.merged = sha
		p.close(g.now())
		g.target(p.base).Move(p.baseRef, sha, by.login)
	})
	return sha
}

func (p *pull) close(now time.Time) {
	p.state, p.closed = "closed", &now
}

// mergedTree lays the pull request's changes over the base branch. The base
// keeps nothing where both changed a file.
func (p *pull) mergedTree() string {
	db := p.base.db
	return db.Merged(db[p.base.branches[p.baseRef]].Commit.Tree, p.changes())
}

// baseSHA is the base branch's head, or where it was merged into.
func (p *pull) baseSHA() string {
	if p.merged != "" {
		return p.base.db[p.merged].Commit.Parents[0]
	}
	return p.base.branches[p.baseRef]
}

// changes are the files changed since the head left the base.
func (p *pull) changes() []gitdb.FileChange {
	db := p.base.db
	from := ""
	if m := db.MergeBase(p.baseSHA(), p.headSHA); m != "" {
		from = db[m].Commit.Tree
	}
	return db.Diff(from, db[p.headSHA].Commit.Tree)
}

func (p *pull) commits() []*gitdb.Commit { return p.base.db.Between(p.baseSHA(), p.headSHA) }

func (r *repo) pull(number int64) *pull {
	if number < 1 || number > int64(len(r.pulls)) {
		return nil
	}
	return r.pulls[number-1]
}
