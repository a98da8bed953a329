// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"cmp"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/gitdb"
)

// maxPushCommits is how many commits a push event lists.
const maxPushCommits = 20

// hookStamp is a time in webhook payloads.
func hookStamp(t time.Time) string { return t.Format("2006-01-02 15:04:05 UTC") }

// PushEvent says which push to tell of.
type PushEvent struct {
	Project string
	// Ref is a full ref such as refs/heads/main.
	Ref string
	// HookID picks the hook; 0 is the project's first for the event.
	HookID int64
	// Before, After and User default to those of the ref's last change.
	Before, After, User string
}

// MergeRequestEvent says which merge request event to tell of.
type MergeRequestEvent struct {
	Project string // the target's
	IID     int64
	// Action is open, update, close, reopen or merge; empty is the last change, with what it
	// changed.
	Action string
	HookID int64
	// User defaults to who made the last change.
	User string
}

// PushDelivery builds a push or tag push event as it stands, without sending it.
func (g *GitLab) PushDelivery(e PushEvent) Delivery {
	defer g.lock()()
	p := g.mustProject(e.Project)
	up, known := p.updates[e.Ref]
	if !known && (e.Before == "" || e.After == "") {
		invalidUse("PushDelivery: %s of %s never changed", e.Ref, e.Project)
	}
	up.before, up.after = cmp.Or(e.Before, up.before), cmp.Or(e.After, up.after)
	if up.after != gitdb.ZeroSHA && p.db.Commit(up.after) == nil {
		invalidUse("PushDelivery: no commit %s in %s", up.after, e.Project)
	}
	if e.User != "" || up.by == nil {
		up.by = g.userOf(cmp.Or(e.User, "octocat"))
	}
	event, kind := PushHook, "push"
	if strings.HasPrefix(e.Ref, "refs/tags/") {
		event, kind = TagPushHook, "tag_push"
	}
	return g.deliver(g.hookFor(e.HookID, p, event), event, g.pushPayload(p, kind, e.Ref, up))
}

func (g *GitLab) pushPayload(p *project, kind, ref string, up refUpdate) object {
	list := p.pushedCommits(ref, up)
	commits := []object{}
	for _, cm := range list[max(0, len(list)-maxPushCommits):] {
		commits = append(commits, p.hookCommit(g, cm, true))
	}
	var checkout any
	if up.after != gitdb.ZeroSHA {
		checkout = up.after
	}
	_, protected := p.protected[strings.TrimPrefix(ref, "refs/heads/")]
	return object{
		"object_kind": kind, "event_name": kind, "before": up.before, "after": up.after, "ref": ref,
		"ref_protected": protected, "checkout_sha": checkout, "message": nil, "user_id": up.by.id,
		"user_name": up.by.username, "user_username": up.by.username, "user_email": nil, "user_avatar": nil,
		"project_id": p.id, "project": p.hookJSON(g), "commits": commits, "total_commits_count": len(list),
		"push_options": object{}, "repository": p.oldHookJSON(g, true),
	}
}

// pushedCommits: a tag tells of its commit; a new branch of what the default
// branch has not, which may be nothing.
func (p *project) pushedCommits(ref string, up refUpdate) []*gitdb.Commit {
	switch {
	case up.after == gitdb.ZeroSHA:
		return nil
	case strings.HasPrefix(ref, "refs/tags/"):
		return []*gitdb.Commit{p.db.Commit(up.after)}
	case up.before == gitdb.ZeroSHA && ref != "refs/heads/"+p.defaultBranch:
		return p.db.Between(p.branches[p.defaultBranch], up.after)
	}
	return p.db.Between(up.before, up.after)
}

// oldHookJSON is the deprecated "repository" of payloads.
func (p *project) oldHookJSON(g *GitLab, urls bool) object {
	all := p.hookJSON(g)
	o := object{"name": all["name"], "url": all["url"], "description": nil, "homepage": all["homepage"]}
	if urls {
		o["git_http_url"], o["git_ssh_url"] = all["git_http_url"], all["git_ssh_url"]
		o["visibility_level"] = all["visibility_level"]
	}
	return o
}

// MergeRequestDelivery builds a merge request event as it stands, without
// sending it. It changes nothing: close the merge request first.
func (g *GitLab) MergeRequestDelivery(e MergeRequestEvent) Delivery {
	defer g.lock()()
	p := g.mustProject(e.Project)
	m := p.mr(e.IID)
	if m == nil {
		invalidUse("MergeRequestDelivery: no merge request %s!%d", e.Project, e.IID)
	}
	last := m.last
	if e.Action != "" && e.Action != last.action {
		last = lastChange{action: e.Action, by: m.author, changes: object{}}
	}
	if e.User != "" {
		last.by = g.userOf(e.User)
	}
	attrs := m.hookJSON(g)
	attrs["action"] = last.action
	if last.oldrev != "" {
		attrs["oldrev"] = last.oldrev
	}
	return g.deliver(g.hookFor(e.HookID, p, MergeRequestHook), MergeRequestHook, object{
		"object_kind": "merge_request", "event_type": "merge_request", "user": last.by.hookJSON(),
		"project": p.hookJSON(g), "object_attributes": attrs, "labels": m.labelsJSON(g), "changes": last.changes,
		"repository": p.oldHookJSON(g, false),
	})
}

// hookJSON is a merge request in webhook payloads.
func (m *mergeRequest) hookJSON(g *GitLab) object {
	state := map[string]int{"opened": 1, "closed": 2, "merged": 3}[m.state]
	o := object{
		"assignee_id": nil, "author_id": m.author.id, "created_at": hookStamp(m.created), "description": m.description,
		"draft": m.draft(), "head_pipeline_id": nil, "id": m.id, "iid": m.iid, "last_edited_at": nil,
		"last_edited_by_id": nil, "merge_commit_sha": nil, "merge_error": nil, "merge_params": object{},
		"merge_status": "can_be_merged", "merge_user_id": nil, "merge_when_pipeline_succeeds": false,
		"milestone_id": nil, "source_branch": m.sourceBranch, "source_project_id": m.source.id, "state_id": state,
		"target_branch": m.targetBranch, "target_project_id": m.target.id, "time_estimate": 0, "title": m.title,
		"updated_at": hookStamp(m.updated), "updated_by_id": nil, "prepared_at": hookStamp(m.created), "url": m.web(g),
		"source": m.source.hookJSON(g), "target": m.target.hookJSON(g),
		"last_commit":      m.target.hookCommit(g, m.target.db.Commit(m.head), false),
		"work_in_progress": m.draft(), "total_time_spent": 0, "time_change": 0, "human_total_time_spent": nil,
		"human_time_change": nil, "human_time_estimate": nil, "assignee_ids": []int64{}, "reviewer_ids": []int64{},
		"labels": m.labelsJSON(g), "state": m.state, "blocking_discussions_resolved": true,
		"first_contribution": false, "detailed_merge_status": "mergeable",
	}
	if pl := g.newestPipeline(m.source, m.head, "", 0); pl != nil {
		o["head_pipeline_id"] = pl.id
	}
	if m.merged != "" {
		o["merge_commit_sha"] = m.merged
	}
	return o
}

// NoteDelivery builds the event of a note on a merge request or commit as it
// stands; one that was edited is an update.
func (g *GitLab) NoteDelivery(noteID int64) Delivery {
	defer g.lock()()
	var n *note
	for _, other := range g.notes {
		if other.id == noteID {
			n = other
		}
	}
	if n == nil {
		invalidUse("NoteDelivery: no note %d", noteID)
	}
	p := n.project
	attrs := object{
		"attachment": nil, "author_id": n.by.id, "change_position": nil, "commit_id": nil, "created_at": hookStamp(n.created),
		"discussion_id": nil, "id": n.id, "internal": false, "line_code": nil, "note": n.body, "description": n.body,
		notedID: nil, notedType: "Commit", "original_position": nil, "position": nil, "project_id": p.id,
		"resolved_at": nil, "resolved_by_id": nil, "st_diff": nil, "system": n.system, "type": nil,
		"updated_at": hookStamp(n.updated), "updated_by_id": nil, "action": "create",
	}
	if n.edits > 0 {
		attrs["action"] = "update"
	}
	body := object{
		"object_kind": "note", "event_type": "note", "user": n.by.hookJSON(), "project_id": p.id, "project": p.hookJSON(g),
		"object_attributes": attrs, "repository": p.oldHookJSON(g, false),
	}
	anchor := "#note_" + itoa(n.id)
	if n.mr != nil {
		attrs[notedType], attrs[notedID], attrs["url"] = "MergeRequest", n.mr.id, n.mr.web(g)+anchor
		body["merge_request"] = n.mr.hookJSON(g)
	} else {
		attrs["commit_id"], attrs["url"] = n.sha, p.web(g)+"/-/commit/"+n.sha+anchor
		body["commit"] = p.hookCommit(g, p.db.Commit(n.sha), false)
	}
	return g.deliver(g.hookFor(0, p, NoteHook), NoteHook, body)
}

// EventDelivery builds an event with a body of the test's own, for what the
// forge has no builder for. The body gets no field added.
func (g *GitLab) EventDelivery(hookID int64, event string, body map[string]any) Delivery {
	defer g.lock()()
	return g.deliver(g.mustHook(hookID), event, body)
}
