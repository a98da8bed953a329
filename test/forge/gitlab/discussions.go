// SPDX-License-Identifier: Apache-2.0

package gitlab

import "fmt"

// listDiscussions lists the comments on a commit, oldest first. Each is a
// discussion of its own, without replies.
func listDiscussions(c *call) answer {
	sha := c.r.PathValue("sha")
	if c.project.db.Commit(sha) == nil {
		return notFound("Commit")
	}
	var on []*note
	for _, n := range c.g.notes {
		if n.project == c.project && n.mr == nil && n.sha == sha {
			on = append(on, n)
		}
	}
	return paged(c, on, func(n *note) object {
		o := n.onCommit(c.g)
		o["commit_id"] = sha
		return object{"id": fmt.Sprintf("%040x", n.id), "individual_note": true, "notes": []object{o}}
	})
}

func (n *note) onCommit(g *GitLab) object {
	return object{
		"id": n.id, "type": nil, "body": n.body, "attachment": nil, "author": n.by.json(g), "created_at": stamp(n.created),
		"updated_at": stamp(n.updated), "system": n.system, notedID: nil, notedType: "Commit", "project_id": n.project.id,
		"resolvable": false, "confidential": false, "internal": false, "imported": false, notedIID: nil,
		"commands_changes": object{},
	}
}

// EditNote changes what a note says, in its author's name.
func (g *GitLab) EditNote(id int64, body string) {
	defer g.lock()()
	for _, n := range g.notes {
		if n.id == id {
			n.body, n.updated = body, g.now()
			n.edits++
			g.core.Notify()
			return
		}
	}
	invalidUse("EditNote: no note %d", id)
}
