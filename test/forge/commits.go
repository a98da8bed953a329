// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"bytes"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	maxCommitFiles  = 3000 // of one commit, over all pages
	maxCompareFiles = 300
)

// fileChange is one file of a difference.
type fileChange struct {
	path, status, sha, previous string
	additions, deletions        int
}

// diff lists what changed from one tree to another, by path. A file that
// moved without a change is renamed.
func (db objects) diff(from, to string) []fileChange {
	old, now := db.files(from), db.files(to)
	gone := map[string]string{} // blob -> path
	for _, p := range slices.Sorted(maps.Keys(old)) {
		if now[p] == "" {
			gone[old[p]] = p
		}
	}
	var out []fileChange
	renamed := map[string]bool{}
	for _, p := range slices.Sorted(maps.Keys(now)) {
		was := old[p]
		switch {
		case was == now[p]:
		case was != "":
			out = append(out, fileChange{p, "modified", now[p], "", db.lines(now[p]), db.lines(was)})
		case gone[now[p]] != "" && !renamed[gone[now[p]]]:
			renamed[gone[now[p]]] = true
			out = append(out, fileChange{p, "renamed", now[p], gone[now[p]], 0, 0})
		default:
			out = append(out, fileChange{p, "added", now[p], "", db.lines(now[p]), 0})
		}
	}
	for p, blob := range old {
		if now[p] == "" && !renamed[p] {
			out = append(out, fileChange{p, "removed", blob, "", 0, db.lines(blob)})
		}
	}
	slices.SortFunc(out, func(a, b fileChange) int { return strings.Compare(a.path, b.path) })
	return out
}

func (db objects) lines(blob string) int {
	if db[blob] == nil {
		return 0
	}
	b := db[blob].blob
	n := bytes.Count(b, []byte("\n"))
	if len(b) > 0 && b[len(b)-1] != '\n' {
		n++
	}
	return n
}

func (r *repo) filesJSON(g *GitHub, changes []fileChange, at string) []object {
	out := []object{}
	for _, f := range changes {
		o := object{
			"sha": f.sha, "filename": f.path, "status": f.status, "additions": f.additions,
			"deletions": f.deletions, "changes": f.additions + f.deletions,
			"blob_url":     r.html(g) + "/blob/" + at + "/" + f.path,
			"raw_url":      r.html(g) + "/raw/" + at + "/" + f.path,
			"contents_url": r.api(g) + "/contents/" + f.path + "?ref=" + at,
		}
		if f.previous != "" {
			o["previous_filename"] = f.previous
		}
		out = append(out, o)
	}
	return out
}

func (r *repo) commitJSON(g *GitHub, c *commit) object {
	parents := []object{}
	for _, p := range c.parents {
		parents = append(parents, object{"sha": p, "url": r.api(g) + "/commits/" + p, "html_url": r.html(g) + "/commit/" + p})
	}
	who := object{"name": c.author.login, "email": c.author.email(), "date": c.when.Format(time.RFC3339)}
	return object{
		"sha": c.sha, "url": r.api(g) + "/commits/" + c.sha, "html_url": r.html(g) + "/commit/" + c.sha,
		"commit": object{
			"author": who, "committer": who, "message": c.message, "comment_count": 0,
			"tree": object{"sha": c.tree, "url": r.api(g) + "/git/trees/" + c.tree},
			"url":  r.api(g) + "/git/commits/" + c.sha,
		},
		"author": c.author.json(g), "committer": c.author.json(g), "parents": parents,
	}
}

// commitAt finds the commit the path's {ref} means, or GitHub's refusal.
func (c *call) commitAt(ref string) (*commit, *answer) {
	if len(c.repo.branches) == 0 && len(c.repo.db) == 0 {
		a := refuse(http.StatusConflict, c.rt.doc, "Git Repository is empty.")
		return nil, &a
	}
	sha := c.repo.resolve(ref)
	if sha == "" {
		a := refuse(http.StatusUnprocessableEntity, c.rt.doc, "No commit found for SHA: "+ref)
		return nil, &a
	}
	return c.repo.db[sha].commit, nil
}

func getCommit(c *call) answer {
	cm, problem := c.commitAt(c.r.PathValue("ref"))
	if problem != nil {
		return *problem
	}
	parentTree := ""
	if len(cm.parents) > 0 {
		parentTree = c.repo.db[cm.parents[0]].commit.tree
	}
	changes := c.repo.db.diff(parentTree, cm.tree)
	changes = changes[:min(len(changes), maxCommitFiles)]
	return paged(c, changes, func(part []fileChange) any {
		o := c.repo.commitJSON(c.g, cm)
		add, del := 0, 0
		for _, f := range changes {
			add, del = add+f.additions, del+f.deletions
		}
		o["stats"] = object{"additions": add, "deletions": del, "total": add + del}
		o["files"] = c.repo.filesJSON(c.g, part, cm.sha)
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
	merge := db.mergeBase(from, to)
	if merge == "" {
		return refuse(http.StatusNotFound, c.rt.doc, "No common ancestor between "+base+" and "+head+".")
	}
	ahead, behind := db.between(from, to), db.between(to, from)
	files := db.diff(db[merge].commit.tree, db[to].commit.tree)
	files = files[:min(len(files), maxCompareFiles)]
	return paged(c, ahead, func(part []*commit) any {
		list := []object{}
		for _, cm := range part {
			list = append(list, c.repo.commitJSON(c.g, cm))
		}
		return object{
			"status": compareStatus(len(ahead), len(behind)), "ahead_by": len(ahead), "behind_by": len(behind),
			"total_commits": len(ahead), "commits": list, "files": c.repo.filesJSON(c.g, files, to),
			"base_commit":       c.repo.commitJSON(c.g, db[from].commit),
			"merge_base_commit": c.repo.commitJSON(c.g, db[merge].commit),
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
			c.repo.db.take(r.db, sha)
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
