// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"strings"

	"github.com/plumbline-ci/plumbline/test/forge/internal/gitdb"
)

// Deleted as a file's content in Change.Files removes the file.
const Deleted = gitdb.Deleted

// Change is a commit to be made.
type Change = gitdb.Change

// target is the repository for pushes.
func (g *GitHub) target(r *repo) gitdb.Target {
	return gitdb.Target{
		DB: r.db, DefaultBranch: r.defaultBranch, Branches: r.branches, Tags: r.tags,
		Annotated: r.annotated, Now: g.now(),
		Person: func(login string) gitdb.Person { return g.userOf(login).person() },
		Moved: func(ref, before, after, login string) {
			g.moved(r, ref, refUpdate{before: before, after: after, by: g.userOf(login)})
		},
	}
}

// moved remembers the change of a ref and lets the pull requests of a branch follow.
func (g *GitHub) moved(r *repo, ref string, up refUpdate) {
	branch, follows := strings.CutPrefix(ref, gitdb.Heads)
	follows = follows && up.after != zeroSHA
	up.forced = follows && up.before != zeroSHA && r.db.MergeBase(up.before, up.after) != up.before
	r.updates[ref] = up
	for _, base := range g.repos {
		for _, p := range base.pulls {
			if follows && p.state == "open" && p.head == r && p.headRef == branch {
				p.before, p.headSHA = p.headSHA, up.after
				p.updated = g.now()
				base.db.Take(r.db, up.after)
			}
		}
	}
	g.core.Notify()
}
