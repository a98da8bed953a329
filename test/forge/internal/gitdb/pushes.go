// SPDX-License-Identifier: Apache-2.0

package gitdb

import (
	"cmp"
	"fmt"
	"maps"
	"time"
)

// The folders of refs.
const (
	Heads = "refs/heads/"
	tags  = "refs/tags/"
)

// Pushes is what tests do to the branches and tags of a forge's repositories. A forge embeds it.
type Pushes struct {
	act, look func(repo string) (done func())
	find      func(repo string) Target
}

// NewPushes makes them. act and look lock the forge until done is called, for what changes a
// repository and for what does not.
func NewPushes(act, look func(repo string) (done func()), find func(repo string) Target) Pushes {
	return Pushes{act, look, find}
}

// Target is a repository that is pushed to.
type Target struct {
	DB
	DefaultBranch             string
	Branches, Tags, Annotated map[string]string // name -> commit; of annotated tags the tag object
	Now                       time.Time
	// Person makes a user known.
	Person func(login string) Person
	// Moved tells the forge of a ref, in full, that somebody has created, moved or deleted.
	Moved func(ref, before, after, login string)
}

// Commit makes a commit and pushes it to the branch, which it creates if need be. Open pull
// requests from the branch follow. It returns the SHA, which is that of git for the same content,
// time and parents.
func (p Pushes) Commit(repo, branch string, ch Change) string {
	defer p.act(repo)()
	t, author := p.find(repo), cmp.Or(ch.Author, "octocat")
	parent := cmp.Or(ch.Parent, t.Branches[branch], t.Branches[t.DefaultBranch])
	if ch.Orphan {
		parent = ""
	}
	ch.Message = cmp.Or(ch.Message, "change")
	sha, err := t.Apply(ch, parent, t.Person(author), t.Now)
	if err != nil {
		panic(fmt.Sprintf("forge: Commit: %v in %s", err, repo))
	}
	t.Move(branch, sha, author)
	return sha
}

// SetBranch moves or creates a branch, as a push of commits that exist.
func (p Pushes) SetBranch(repo, branch, sha, user string) {
	p.on(repo, sha, func(t Target) { t.Move(branch, sha, user) })
}

// DeleteBranch deletes a branch; its commits stay.
func (p Pushes) DeleteBranch(repo, branch, user string) {
	p.on(repo, "", func(t Target) { t.move(Heads, t.Branches, branch, ZeroSHA, user) })
}

// CreateTag creates or moves a lightweight tag on a commit.
func (p Pushes) CreateTag(repo, tag, sha, user string) {
	p.on(repo, sha, func(t Target) {
		delete(t.Annotated, tag)
		t.move(tags, t.Tags, tag, sha, user)
	})
}

// Annotate makes a tag that there is an annotated one: the ref points to a tag object, whose id it
// returns, and that to the commit. Its push events stay those of a lightweight one.
func (p Pushes) Annotate(repo, tag string) string {
	defer p.look(repo)()
	t := p.find(repo)
	if t.Tags[tag] == "" {
		panic(fmt.Sprintf("forge: no tag %s in %s", tag, repo))
	}
	t.Annotated[tag] = TagID(tag, t.Tags[tag])
	return t.Annotated[tag]
}

// DeleteTag deletes a tag.
func (p Pushes) DeleteTag(repo, tag, user string) {
	p.on(repo, "", func(t Target) { t.move(tags, t.Tags, tag, ZeroSHA, user) })
}

// Branches returns the heads of a repository's branches.
func (p Pushes) Branches(repo string) map[string]string {
	defer p.look(repo)()
	return maps.Clone(p.find(repo).Branches)
}

// on does something to a repository that has the commit, if one is named.
func (p Pushes) on(repo, sha string, do func(t Target)) {
	defer p.act(repo)()
	t := p.find(repo)
	if sha != "" && t.Commit(sha) == nil {
		panic(fmt.Sprintf("forge: no commit %s in %s", sha, repo))
	}
	do(t)
}

// Move sets a branch to a commit.
func (t Target) Move(branch, sha, login string) { t.move(Heads, t.Branches, branch, sha, login) }

// move sets a ref, or deletes it where the commit is none.
func (t Target) move(under string, refs map[string]string, name, sha, login string) {
	before := cmp.Or(refs[name], ZeroSHA)
	switch {
	case sha != ZeroSHA:
		refs[name] = sha
	case before == ZeroSHA:
		panic("forge: no " + under + name)
	default:
		delete(refs, name)
	}
	t.Moved(under+name, before, sha, login)
}
