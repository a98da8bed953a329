// SPDX-License-Identifier: Apache-2.0

package gitdb

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// Ancestors lists a commit and all its ancestors, nearest first.
func (db DB) Ancestors(sha string) []string {
	seen := map[string]bool{}
	queue := []string{sha}
	var out []string
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		if s == "" || seen[s] || db.Commit(s) == nil {
			continue
		}
		seen[s] = true
		out = append(out, s)
		queue = append(queue, db[s].Commit.Parents...)
	}
	return out
}

// MergeBase is the nearest commit of head's history that base has too.
func (db DB) MergeBase(base, head string) string {
	mine := map[string]bool{}
	for _, s := range db.Ancestors(base) {
		mine[s] = true
	}
	for _, s := range db.Ancestors(head) {
		if mine[s] {
			return s
		}
	}
	return ""
}

// Between lists the commits of head that base has not, oldest first.
func (db DB) Between(base, head string) []*Commit {
	have := map[string]bool{}
	for _, s := range db.Ancestors(base) {
		have[s] = true
	}
	var out []*Commit
	for _, s := range db.Ancestors(head) {
		if !have[s] {
			out = append(out, db[s].Commit)
		}
	}
	slices.Reverse(out)
	return out
}

// FileChange is one file of a difference. Status is added, removed, modified
// or renamed; Previous is the path before a renaming.
type FileChange struct {
	Path, Status, SHA, Previous string
	Additions, Deletions        int
}

// Diff lists what changed from one tree to another, by path. A file that
// moved without a change is renamed.
func (db DB) Diff(from, to string) []FileChange {
	old, now := db.Files(from), db.Files(to)
	gone := map[string]string{} // blob -> path
	for _, p := range slices.Sorted(maps.Keys(old)) {
		if now[p] == "" {
			gone[old[p]] = p
		}
	}
	var out []FileChange
	renamed := map[string]bool{}
	for _, p := range slices.Sorted(maps.Keys(now)) {
		was := old[p]
		switch {
		case was == now[p]:
		case was != "":
			out = append(out, FileChange{p, "modified", now[p], "", db.lines(now[p]), db.lines(was)})
		case gone[now[p]] != "" && !renamed[gone[now[p]]]:
			renamed[gone[now[p]]] = true
			out = append(out, FileChange{p, "renamed", now[p], gone[now[p]], 0, 0})
		default:
			out = append(out, FileChange{p, "added", now[p], "", db.lines(now[p]), 0})
		}
	}
	for p, blob := range old {
		if now[p] == "" && !renamed[p] {
			out = append(out, FileChange{p, "removed", blob, "", 0, db.lines(blob)})
		}
	}
	slices.SortFunc(out, func(a, b FileChange) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// DiffOf is what a commit changed since its first parent.
func (db DB) DiffOf(c *Commit) []FileChange {
	parent := ""
	if len(c.Parents) > 0 {
		parent = db[c.Parents[0]].Commit.Tree
	}
	return db.Diff(parent, c.Tree)
}

func (db DB) lines(blob string) int {
	if db[blob] == nil {
		return 0
	}
	b := db[blob].Blob
	n := bytes.Count(b, []byte("\n"))
	if len(b) > 0 && b[len(b)-1] != '\n' {
		n++
	}
	return n
}

// Merged lays the changes over a tree and returns the new tree's SHA. The
// tree keeps nothing of a file that is changed.
func (db DB) Merged(tree string, changes []FileChange) string {
	files := db.Files(tree)
	for _, f := range changes {
		if f.Previous != "" {
			delete(files, f.Previous)
		}
		if f.Status == "removed" {
			delete(files, f.Path)
			continue
		}
		files[f.Path] = f.SHA
	}
	return db.PutTree(files)
}

// TouchedPaths sorts changes into the three lists that push events carry; a
// renamed file is one added and one removed.
func TouchedPaths(changes []FileChange) (added, removed, modified []string) {
	added, removed, modified = []string{}, []string{}, []string{}
	for _, f := range changes {
		switch f.Status {
		case "added":
			added = append(added, f.Path)
		case "removed":
			removed = append(removed, f.Path)
		case "renamed":
			added, removed = append(added, f.Path), append(removed, f.Previous)
		default:
			modified = append(modified, f.Path)
		}
	}
	return added, removed, modified
}
