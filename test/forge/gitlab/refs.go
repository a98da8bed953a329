// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"fmt"
	"strings"

	"github.com/plumbline-ci/plumbline/test/forge/internal/gitdb"
)

// Deleted as a file's content in Change.Files removes the file.
const Deleted = gitdb.Deleted

// Change is a commit to be made.
type Change = gitdb.Change

// target is the project for pushes.
func (g *GitLab) target(p *project) gitdb.Target {
	return gitdb.Target{
		DB: p.db, DefaultBranch: p.defaultBranch, Branches: p.branches, Tags: p.tags,
		Annotated: p.annotated, Now: g.now(),
		Person: func(username string) gitdb.Person { return g.userOf(username).person() },
		Moved: func(ref, before, after, username string) {
			g.moved(p, ref, refUpdate{before: before, after: after, by: g.userOf(username)})
		},
	}
}

// moved remembers the change of a ref and lets the merge requests of a branch follow.
func (g *GitLab) moved(p *project, ref string, up refUpdate) {
	g.updated(p, ref, up)
	branch, follows := strings.CutPrefix(ref, gitdb.Heads)
	follows = follows && up.after != gitdb.ZeroSHA
	for _, target := range g.projects {
		for _, m := range target.mrs {
			if follows && m.state == "opened" && m.source == p && m.sourceBranch == branch && m.head != up.after {
				g.follow(m, up)
			}
		}
	}
	g.core.Notify()
}

// follow gives a merge request the head that its branch was moved to.
func (g *GitLab) follow(m *mergeRequest, up refUpdate) {
	oldrev, db := m.head, m.target.db
	db.Take(m.source.db, up.after)
	m.moveHead(g, up.after)
	g.systemNote(m, up.by, fmt.Sprintf("added %d commits", len(db.Between(oldrev, up.after))))
	m.changed(g, "update", up.by, object{})
	m.last.oldrev = oldrev
}
