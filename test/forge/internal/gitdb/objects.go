// SPDX-License-Identifier: Apache-2.0

// Package gitdb keeps a Git repository in memory: commits, trees and blobs by
// the SHAs that git itself gives them, and what follows from them (refs,
// differences, ancestors, merge bases). It knows no forge.
package gitdb

import (
	"bytes"
	"crypto/sha1" // git names objects by it; nothing is secured by it
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ZeroSHA stands for no commit, before a ref exists and after it is deleted.
const ZeroSHA = "0000000000000000000000000000000000000000"

// TreeMode is the mode of an entry that is a directory.
const TreeMode = "40000"

// Object is a blob, a tree or a commit; which one, Kind says.
type Object struct {
	Kind    string
	Blob    []byte
	Entries []Entry
	Commit  *Commit
}

// Entry is a line of a tree.
type Entry struct {
	Name, Mode, SHA string
}

// IsTree tells a directory from a file.
func (e Entry) IsTree() bool { return e.Mode == TreeMode }

// Person made a commit.
type Person struct{ Name, Email string }

// Commit is a commit; its author is its committer.
type Commit struct {
	SHA, Tree string
	Parents   []string
	Message   string
	Author    Person
	When      time.Time
}

// DB is the object database of one repository, by SHA.
type DB map[string]*Object

// Commit is the commit with this SHA, or nil.
func (db DB) Commit(sha string) *Commit {
	if o := db[sha]; o != nil {
		return o.Commit
	}
	return nil
}

func id(kind string, body []byte) string {
	sum := sha1.Sum(append(fmt.Appendf(nil, "%s %d\x00", kind, len(body)), body...))
	return hex.EncodeToString(sum[:])
}

// TagID is the SHA of a tag object of that name that points to the commit.
func TagID(name, commit string) string {
	return id("tag", fmt.Appendf(nil, "object %s\ntype commit\ntag %s\n\na release\n", commit, name))
}

func (db DB) put(kind string, body []byte, o *Object) string {
	sha := id(kind, body)
	if db[sha] == nil {
		o.Kind = kind
		db[sha] = o
	}
	return sha
}

// PutBlob stores a file's content and returns its SHA.
func (db DB) PutBlob(content string) string {
	return db.put("blob", []byte(content), &Object{Blob: []byte(content)})
}

// PutTree stores the tree of flat paths and returns its SHA.
func (db DB) PutTree(files map[string]string) string {
	dirs := map[string]map[string]string{}
	var entries []Entry
	for path, sha := range files {
		dir, rest, nested := strings.Cut(path, "/")
		if !nested {
			entries = append(entries, Entry{path, "100644", sha})
			continue
		}
		if dirs[dir] == nil {
			dirs[dir] = map[string]string{}
		}
		dirs[dir][rest] = sha
	}
	for dir, sub := range dirs {
		entries = append(entries, Entry{dir, TreeMode, db.PutTree(sub)})
	}
	// git sorts a directory as if its name ended in a slash.
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.sortName(), b.sortName()) })
	var body bytes.Buffer
	for _, e := range entries {
		fmt.Fprintf(&body, "%s %s\x00", e.Mode, e.Name)
		raw, _ := hex.DecodeString(e.SHA) // our own SHAs are hex
		body.Write(raw)
	}
	return db.put("tree", body.Bytes(), &Object{Entries: entries})
}

func (e Entry) sortName() string {
	if e.IsTree() {
		return e.Name + "/"
	}
	return e.Name
}

// PutCommit stores a commit and returns its SHA.
func (db DB) PutCommit(c Commit) string {
	var body bytes.Buffer
	fmt.Fprintf(&body, "tree %s\n", c.Tree)
	for _, p := range c.Parents {
		fmt.Fprintf(&body, "parent %s\n", p)
	}
	who := fmt.Sprintf("%s <%s> %d +0000", c.Author.Name, c.Author.Email, c.When.Unix())
	fmt.Fprintf(&body, "author %s\ncommitter %s\n\n%s", who, who, c.Message)
	sha := db.put("commit", body.Bytes(), &Object{Commit: &c})
	db[sha].Commit.SHA = sha
	return sha
}

// Files flattens a tree to path -> blob SHA.
func (db DB) Files(tree string) map[string]string {
	out := map[string]string{}
	db.Walk(tree, "", func(path string, e Entry) {
		if !e.IsTree() {
			out[path] = e.SHA
		}
	})
	return out
}

// Walk visits a tree's entries and those below, parents first.
func (db DB) Walk(tree, prefix string, visit func(string, Entry)) {
	o := db[tree]
	if o == nil {
		return
	}
	for _, e := range o.Entries {
		visit(prefix+e.Name, e)
		if e.IsTree() {
			db.Walk(e.SHA, prefix+e.Name+"/", visit)
		}
	}
}

// EntryAt finds a path below a tree; the empty path is the tree itself.
func (db DB) EntryAt(tree, path string) (Entry, bool) {
	e := Entry{Mode: TreeMode, SHA: tree}
	if path == "" {
		return e, true
	}
	for _, name := range strings.Split(path, "/") {
		next, found := Entry{}, false
		if o := db[e.SHA]; o != nil {
			for _, child := range o.Entries {
				if child.Name == name {
					next, found = child, true
				}
			}
		}
		if !found {
			return Entry{}, false
		}
		e = next
	}
	return e, true
}

// Take copies a commit with all it reaches from another repository.
func (db DB) Take(from DB, sha string) {
	if sha == "" || db[sha] != nil || from[sha] == nil {
		return
	}
	o := from[sha]
	db[sha] = o
	for _, e := range o.Entries {
		db.Take(from, e.SHA)
	}
	if o.Commit != nil {
		db.Take(from, o.Commit.Tree)
		for _, p := range o.Commit.Parents {
			db.Take(from, p)
		}
	}
}
