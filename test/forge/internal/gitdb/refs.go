// SPDX-License-Identifier: Apache-2.0

package gitdb

import (
	"fmt"
	"strings"
	"time"
)

// Deleted as a file's content in Change.Files removes the file.
const Deleted = "\x00deleted"

// Change is a commit to be made.
type Change struct {
	Message string
	// Files maps paths to their new content; other files stay as they are.
	Files map[string]string
	// Author is a user's login; empty is "octocat".
	Author string
	// Parent is the commit to build on; empty is the branch's head, or the default branch's for a
	// new branch. With a parent that is not the head the push is a forced one.
	Parent string
	// Orphan begins a history of its own, with these files alone.
	Orphan bool
}

// Apply commits the change on top of parent ("" is none) and returns the SHA.
// It fails only when the parent does not exist.
func (db DB) Apply(ch Change, parent string, by Person, at time.Time) (string, error) {
	c := Commit{Message: ch.Message, Author: by, When: at}
	files := map[string]string{}
	if parent != "" {
		p := db.Commit(parent)
		if p == nil {
			return "", fmt.Errorf("no commit %s", parent)
		}
		c.Parents = []string{parent}
		files = db.Files(p.Tree)
	}
	for path, content := range ch.Files {
		if content == Deleted {
			delete(files, path)
			continue
		}
		files[path] = db.PutBlob(content)
	}
	c.Tree = db.PutTree(files)
	return db.PutCommit(c), nil
}

// Resolve finds the commit a ref means: a full SHA, a branch, a tag, a full
// ref or an unambiguous start of a SHA. "" is none.
func (db DB) Resolve(branches, tags map[string]string, ref string) string {
	if db.Commit(ref) != nil {
		return ref
	}
	if sha := named(branches, "heads/", ref); sha != "" {
		return sha
	}
	if sha := named(tags, "tags/", ref); sha != "" {
		return sha
	}
	return db.abbreviated(ref)
}

// named looks a ref up by its short name, heads/x or refs/heads/x.
func named(refs map[string]string, under, ref string) string {
	for _, prefix := range []string{"", under, "refs/" + under} {
		if name, found := strings.CutPrefix(ref, prefix); found && refs[name] != "" {
			return refs[name]
		}
	}
	return ""
}

// abbreviated finds the one commit whose SHA starts with ref.
func (db DB) abbreviated(ref string) string {
	found := ""
	for sha, o := range db {
		if len(ref) < 7 || o.Commit == nil || !strings.HasPrefix(sha, ref) {
			continue
		}
		if found != "" {
			return ""
		}
		found = sha
	}
	return found
}
