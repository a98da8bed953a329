// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"cmp"
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/gitdb"
	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// maxPullFiles is how many files of a pull request GitHub lists, over all pages.
const maxPullFiles = 3000

func getPull(c *call) answer {
	return ok(c.pull().full(c.g))
}

// pull is that of the path.
func (c *call) pull() *pull {
	p := c.repo.pull(c.number("number"))
	if p == nil {
		panic(traffic.Refuse(notFound(c.rt.doc)))
	}
	return p
}

func listPulls(c *call) answer {
	q := c.r.URL.Query()
	state := cmp.Or(q.Get("state"), "open")
	var list []*pull
	for _, p := range c.repo.pulls {
		if (state != "all" && p.state != state) || (q.Get("base") != "" && q.Get("base") != p.baseRef) {
			continue
		}
		if h := q.Get("head"); h != "" && key(h) != key(p.head.owner.login+":"+p.headRef) {
			continue
		}
		list = append(list, p)
	}
	if q.Get("direction") != "asc" {
		slices.Reverse(list)
	}
	return listed(c, list, (*pull).json)
}

func listPullFiles(c *call) answer {
	p := c.pull()
	changes := p.changes()
	return paged(c, changes[:min(len(changes), maxPullFiles)], func(part []gitdb.FileChange) any {
		return c.repo.filesJSON(c.g, part, p.headSHA)
	})
}

// listCommitPulls: the merged pull request that brought a commit into the
// default branch; of any other commit the open and merged ones that hold it.
func listCommitPulls(c *call) answer {
	cm := c.commitAt(c.r.PathValue("ref"))
	inDefault := slices.Contains(c.repo.db.Ancestors(c.repo.branches[c.repo.defaultBranch]), cm.SHA)
	var list []*pull
	for _, p := range c.repo.pulls {
		holds := p.merged == cm.SHA
		for _, pc := range p.commits() {
			holds = holds || pc.SHA == cm.SHA
		}
		if holds && (p.merged != "" || (!inDefault && p.state == "open")) {
			list = append(list, p)
		}
	}
	return listed(c, list, (*pull).json)
}

func (p *pull) json(g *GitHub) object {
	n := itoa(int64(p.number))
	labels := []object{}
	for i, l := range p.labels {
		labels = append(labels, labelJSON(p, i, l))
	}
	o := object{
		"id": p.id, "node_id": nodeID("PR", p.id), "number": p.number, "state": p.state, "locked": p.locked,
		"title": p.title, "body": p.body, "draft": p.draft, "user": p.user.json(g), "labels": labels,
		"url": p.base.api(g) + "/pulls/" + n, "html_url": p.base.html(g) + "/pull/" + n,
		"issue_url": p.base.api(g) + "/issues/" + n, "diff_url": p.base.html(g) + "/pull/" + n + ".diff",
		"created_at": p.created.Format(time.RFC3339), "updated_at": p.updated.Format(time.RFC3339),
		"closed_at": nil, "merged_at": nil, "merge_commit_sha": nil, "assignees": []object{},
		"author_association": p.association(),
		"head":               endJSON(g, p.head, p.headRef, p.headSHA),
		"base":               endJSON(g, p.base, p.baseRef, p.baseSHA()),
	}
	if p.closed != nil {
		o["closed_at"] = p.closed.Format(time.RFC3339)
	}
	if p.merged != "" {
		o["merged_at"], o["merge_commit_sha"] = o["closed_at"], p.merged
	}
	return o
}

// full adds what only the single pull request and the events carry.
func (p *pull) full(g *GitHub) object {
	o := p.json(g)
	changes := p.changes()
	add, del := 0, 0
	for _, f := range changes {
		add, del = add+f.Additions, del+f.Deletions
	}
	o["commits"], o["changed_files"], o["additions"], o["deletions"] = len(p.commits()), len(changes), add, del
	o["merged"], o["mergeable"], o["mergeable_state"] = p.merged != "", true, "clean"
	o["maintainer_can_modify"] = false
	return o
}

func labelJSON(p *pull, i int, name string) object {
	return object{"id": p.id*100 + int64(i), "name": name, "color": "ededed", "default": false, "description": nil}
}

// endJSON is the head or the base of a pull request. GitHub has null for a repository that was
// deleted.
func endJSON(g *GitHub, r *repo, ref, sha string) object {
	o := object{"label": r.owner.login + ":" + ref, "ref": ref, "sha": sha, "user": r.owner.json(g), "repo": nil}
	if g.repoByID(r.id) != nil {
		o["repo"] = r.json(g)
	}
	return o
}

// association is the author's tie to the base repository.
func (p *pull) association() string {
	switch {
	case p.base.owner == p.user:
		return "OWNER"
	case p.base.owner.members[key(p.user.login)] != nil:
		return "MEMBER"
	case p.base.collaborators[key(p.user.login)] != "":
		return "COLLABORATOR"
	}
	return "NONE"
}
