// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"net/http"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/gitdb"
	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

const (
	maxCommitFiles  = 3000 // of one commit, over all pages
	maxCompareFiles = 300
)

func (r *repo) filesJSON(g *GitHub, changes []gitdb.FileChange, at string) []object {
	out := []object{}
	for _, f := range changes {
		o := object{
			"sha": f.SHA, "filename": f.Path, "status": f.Status, "additions": f.Additions,
			"deletions": f.Deletions, "changes": f.Additions + f.Deletions,
			"blob_url":     r.html(g) + "/blob/" + at + "/" + f.Path,
			"raw_url":      r.html(g) + "/raw/" + at + "/" + f.Path,
			"contents_url": r.api(g) + "/contents/" + f.Path + "?ref=" + at,
		}
		if f.Previous != "" {
			o["previous_filename"] = f.Previous
		}
		out = append(out, o)
	}
	return out
}

func (r *repo) commitJSON(g *GitHub, c *gitdb.Commit) object {
	parents := []object{}
	for _, p := range c.Parents {
		parents = append(parents, object{"sha": p, "url": r.api(g) + "/commits/" + p, "html_url": r.html(g) + "/commit/" + p})
	}
	who := object{"name": c.Author.Name, "email": c.Author.Email, "date": c.When.Format(time.RFC3339)}
	return object{
		"sha": c.SHA, "url": r.api(g) + "/commits/" + c.SHA, "html_url": r.html(g) + "/commit/" + c.SHA,
		"commit": object{
			"author": who, "committer": who, "message": c.Message, "comment_count": 0,
			"tree": object{"sha": c.Tree, "url": r.api(g) + "/git/trees/" + c.Tree},
			"url":  r.api(g) + "/git/commits/" + c.SHA,
		},
		"author": g.userOf(c.Author.Name).json(g), "committer": g.userOf(c.Author.Name).json(g), "parents": parents,
	}
}

// commitAt finds the commit the path's {ref} means, or GitHub's refusal.
func (c *call) commitAt(ref string) *gitdb.Commit {
	if len(c.repo.branches) == 0 && len(c.repo.db) == 0 {
		panic(traffic.Refuse(refuse(http.StatusConflict, c.rt.doc, "Git Repository is empty.")))
	}
	sha := c.repo.resolve(ref)
	if sha == "" {
		panic(traffic.Refuse(refuse(http.StatusUnprocessableEntity, c.rt.doc, "No commit found for SHA: "+ref)))
	}
	return c.repo.db[sha].Commit
}

func getCommit(c *call) answer {
	cm := c.commitAt(c.r.PathValue("ref"))
	changes := c.repo.db.DiffOf(cm)
	changes = changes[:min(len(changes), maxCommitFiles)]
	return paged(c, changes, func(part []gitdb.FileChange) any {
		o := c.repo.commitJSON(c.g, cm)
		add, del := 0, 0
		for _, f := range changes {
			add, del = add+f.Additions, del+f.Deletions
		}
		o["stats"] = object{"additions": add, "deletions": del, "total": add + del}
		o["files"] = c.repo.filesJSON(c.g, part, cm.SHA)
		return o
	})
}

func compare(c *call) answer {
	base, head, split := strings.Cut(c.r.PathValue("basehead"), "...")
	from, to := c.endOf(base), c.endOf(head)
	if !split || from == "" || to == "" {
		return notFound(c.rt.doc)
	}
	db := c.repo.db
	merge := db.MergeBase(from, to)
	if merge == "" {
		return refuse(http.StatusNotFound, c.rt.doc, "No common ancestor between "+base+" and "+head+".")
	}
	ahead, behind := db.Between(from, to), db.Between(to, from)
	files := db.Diff(db[merge].Commit.Tree, db[to].Commit.Tree)
	files = files[:min(len(files), maxCompareFiles)]
	return paged(c, ahead, func(part []*gitdb.Commit) any {
		list := []object{}
		for _, cm := range part {
			list = append(list, c.repo.commitJSON(c.g, cm))
		}
		return object{
			"status": compareStatus(len(ahead), len(behind)), "ahead_by": len(ahead), "behind_by": len(behind),
			"total_commits": len(ahead), "commits": list, "files": c.repo.filesJSON(c.g, files, to),
			"base_commit":       c.repo.commitJSON(c.g, db[from].Commit),
			"merge_base_commit": c.repo.commitJSON(c.g, db[merge].Commit),
			"html_url":          c.repo.html(c.g) + "/compare/" + base + "..." + head,
		}
	})
}

// endOf resolves an end of a comparison; owner:branch is a branch of a fork.
func (c *call) endOf(ref string) string {
	owner, branch, isFork := strings.Cut(ref, ":")
	if !isFork {
		return c.repo.resolve(ref)
	}
	for _, r := range c.g.repos {
		if key(r.owner.login) == key(owner) && (r == c.repo || r.parent == c.repo || c.repo.parent == r) {
			sha := r.branches[branch]
			c.repo.db.Take(r.db, sha)
			return sha
		}
	}
	return ""
}

func compareStatus(ahead, behind int) string {
	switch {
	case ahead > 0 && behind > 0:
		return "diverged"
	case ahead > 0:
		return "ahead"
	case behind > 0:
		return "behind"
	}
	return "identical"
}
