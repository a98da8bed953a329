// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"bytes"
	"crypto/sha1" // git names objects by it; nothing is secured by it
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// gitObject is a blob, a tree or a commit; which one, kind says.
type gitObject struct {
	kind    string
	blob    []byte
	entries []treeEntry
	commit  *commit
}

type treeEntry struct {
	name, mode, sha string
}

type commit struct {
	sha, tree string
	parents   []string
	message   string
	author    *account
	when      time.Time
}

// objects is the object database of one repository, by SHA.
type objects map[string]*gitObject

func (db objects) put(kind string, body []byte, o *gitObject) string {
	sum := sha1.Sum(append(fmt.Appendf(nil, "%s %d\x00", kind, len(body)), body...))
	sha := hex.EncodeToString(sum[:])
	if db[sha] == nil {
		o.kind = kind
		db[sha] = o
	}
	return sha
}

// putTree stores the tree of flat paths and returns its SHA.
func (db objects) putTree(files map[string]string) string {
	dirs := map[string]map[string]string{}
	var entries []treeEntry
	for path, sha := range files {
		dir, rest, nested := strings.Cut(path, "/")
		if !nested {
			entries = append(entries, treeEntry{path, "100644", sha})
			continue
		}
		if dirs[dir] == nil {
			dirs[dir] = map[string]string{}
		}
		dirs[dir][rest] = sha
	}
	for dir, sub := range dirs {
		entries = append(entries, treeEntry{dir, "40000", db.putTree(sub)})
	}
	// git sorts a directory as if its name ended in a slash.
	slices.SortFunc(entries, func(a, b treeEntry) int { return strings.Compare(a.sortName(), b.sortName()) })
	var body bytes.Buffer
	for _, e := range entries {
		fmt.Fprintf(&body, "%s %s\x00", e.mode, e.name)
		raw, _ := hex.DecodeString(e.sha) // our own SHAs are hex
		body.Write(raw)
	}
	return db.put("tree", body.Bytes(), &gitObject{entries: entries})
}

func (e treeEntry) sortName() string {
	if e.mode == "40000" {
		return e.name + "/"
	}
	return e.name
}

func (db objects) putCommit(c commit) string {
	var body bytes.Buffer
	fmt.Fprintf(&body, "tree %s\n", c.tree)
	for _, p := range c.parents {
		fmt.Fprintf(&body, "parent %s\n", p)
	}
	who := fmt.Sprintf("%s <%s> %d +0000", c.author.login, c.author.email(), c.when.Unix())
	fmt.Fprintf(&body, "author %s\ncommitter %s\n\n%s", who, who, c.message)
	sha := db.put("commit", body.Bytes(), &gitObject{commit: &c})
	db[sha].commit.sha = sha
	return sha
}

// files flattens a tree to path -> blob SHA.
func (db objects) files(tree string) map[string]string {
	out := map[string]string{}
	db.walk(tree, "", func(path string, e treeEntry) {
		if e.mode != "40000" {
			out[path] = e.sha
		}
	})
	return out
}

// walk visits a tree's entries and those below, parents first.
func (db objects) walk(tree, prefix string, visit func(string, treeEntry)) {
	o := db[tree]
	if o == nil {
		return
	}
	for _, e := range o.entries {
		visit(prefix+e.name, e)
		if e.mode == "40000" {
			db.walk(e.sha, prefix+e.name+"/", visit)
		}
	}
}

// take copies a commit with all it reaches from another repository.
func (db objects) take(from objects, sha string) {
	if sha == "" || db[sha] != nil || from[sha] == nil {
		return
	}
	o := from[sha]
	db[sha] = o
	for _, e := range o.entries {
		db.take(from, e.sha)
	}
	if o.commit != nil {
		db.take(from, o.commit.tree)
		for _, p := range o.commit.parents {
			db.take(from, p)
		}
	}
}

// ancestors lists a commit and all its ancestors, nearest first.
func (db objects) ancestors(sha string) []string {
	seen := map[string]bool{}
	queue := []string{sha}
	var out []string
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		if s == "" || seen[s] || db[s] == nil || db[s].commit == nil {
			continue
		}
		seen[s] = true
		out = append(out, s)
		queue = append(queue, db[s].commit.parents...)
	}
	return out
}

// mergeBase is the nearest commit of head's history that base has too.
func (db objects) mergeBase(base, head string) string {
	mine := map[string]bool{}
	for _, s := range db.ancestors(base) {
		mine[s] = true
	}
	for _, s := range db.ancestors(head) {
		if mine[s] {
			return s
		}
	}
	return ""
}

// between lists the commits of head that base has not, oldest first.
func (db objects) between(base, head string) []*commit {
	have := map[string]bool{}
	for _, s := range db.ancestors(base) {
		have[s] = true
	}
	var out []*commit
	for _, s := range db.ancestors(head) {
		if !have[s] {
			out = append(out, db[s].commit)
		}
	}
	slices.Reverse(out)
	return out
}
