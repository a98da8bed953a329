// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/gitdb"
	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

func title(message string) string {
	first, _, _ := strings.Cut(strings.TrimLeft(message, "\n"), "\n")
	return first
}

func (p *project) commitJSON(g *GitLab, c *gitdb.Commit) object {
	when := c.When.Format("2006-01-02T15:04:05.000-07:00")
	parents := append([]string{}, c.Parents...)
	return object{
		"id": c.SHA, "short_id": c.SHA[:8], "title": title(c.Message), "message": c.Message, "parent_ids": parents,
		"author_name": c.Author.Name, "author_email": c.Author.Email, "authored_date": when,
		"committer_name": c.Author.Name, "committer_email": c.Author.Email, "committed_date": when,
		"created_at": when, "trailers": object{}, "extended_trailers": object{},
		"web_url": p.web(g) + "/-/commit/" + c.SHA,
	}
}

// hookCommit is a commit in webhook payloads; withFiles adds what it touched.
func (p *project) hookCommit(g *GitLab, c *gitdb.Commit, withFiles bool) object {
	o := object{
		"id": c.SHA, "message": c.Message, "title": title(c.Message), "timestamp": c.When.Format(time.RFC3339),
		"url":    p.web(g) + "/-/commit/" + c.SHA,
		"author": object{"name": c.Author.Name, "email": "[REDACTED]"},
	}
	if withFiles {
		o["added"], o["removed"], o["modified"] = gitdb.TouchedPaths(p.db.DiffOf(c))
	}
	return o
}

// diffJSON is one file of a difference.
func (p *project) diffJSON(f gitdb.FileChange) object {
	o := object{
		"diff": p.hunk(f), "collapsed": false, "too_large": false, "generated_file": false,
		"new_path": f.Path, "old_path": cmp.Or(f.Previous, f.Path), "a_mode": "100644", "b_mode": "100644",
		"new_file": f.Status == "added", "renamed_file": f.Status == "renamed", "deleted_file": f.Status == "removed",
	}
	switch f.Status {
	case "added":
		o["a_mode"] = "0"
	case "removed":
		o["b_mode"] = "0"
	}
	return o
}

// hunk shows the new content; what it replaced is not worth a real diff here.
func (p *project) hunk(f gitdb.FileChange) string {
	if f.Status == "renamed" || f.Status == "removed" || p.db[f.SHA] == nil {
		return ""
	}
	body := strings.TrimSuffix(string(p.db[f.SHA].Blob), "\n")
	return fmt.Sprintf("@@ -0,0 +1,%d @@\n+%s\n", f.Additions, strings.ReplaceAll(body, "\n", "\n+"))
}

// commitOfPath is the commit that {sha} means, or GitLab's refusal.
func (c *call) commitOfPath() *gitdb.Commit {
	sha := c.project.resolve(c.r.PathValue("sha"))
	if sha == "" {
		panic(traffic.Refuse(notFound("Commit")))
	}
	return c.project.db.Commit(sha)
}

func getCommit(c *call) answer {
	cm := c.commitOfPath()
	o := c.project.commitJSON(c.g, cm)
	add, del := 0, 0
	for _, f := range c.project.db.DiffOf(cm) {
		add, del = add+f.Additions, del+f.Deletions
	}
	o["stats"] = object{"additions": add, "deletions": del, "total": add + del}
	o["project_id"], o["status"], o["last_pipeline"] = c.project.id, nil, nil
	if last := c.g.newestPipeline(c.project, cm.SHA, "", 0); last != nil {
		o["status"], o["last_pipeline"] = c.g.pipelineStatus(last), c.g.pipelineJSON(last)
	}
	return ok(o)
}

func getCommitDiff(c *call) answer {
	cm := c.commitOfPath()
	return paged(c, c.project.db.DiffOf(cm), c.project.diffJSON)
}

func getCommitRefs(c *call) answer {
	kind := cmp.Or(c.text("type"), "all")
	if kind != "branch" && kind != "tag" && kind != "all" {
		return badParameter("type does not have a valid value")
	}
	cm := c.commitOfPath()
	var list []object
	add := func(as string, names []string) {
		for _, n := range names {
			if kind == "all" || kind == as {
				list = append(list, object{"type": as, "name": n})
			}
		}
	}
	add("branch", c.project.holding(c.project.branches, cm.SHA))
	add("tag", c.project.holding(c.project.tags, cm.SHA))
	return paged(c, list, func(o object) object { return o })
}

// holding lists the refs whose history has the commit, by name.
func (p *project) holding(refs map[string]string, sha string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		if slices.Contains(p.db.Ancestors(refs[name]), sha) {
			out = append(out, name)
		}
	}
	return out
}

func getCommitMRs(c *call) answer {
	cm := c.commitOfPath()
	var list []*mergeRequest
	for _, m := range slices.Backward(c.project.mrs) {
		if m.merged == cm.SHA || slices.ContainsFunc(m.commits(), func(mc *gitdb.Commit) bool { return mc.SHA == cm.SHA }) {
			list = append(list, m)
		}
	}
	return paged(c, list, func(m *mergeRequest) object { return m.json(c.g) })
}

func compare(c *call) answer {
	for _, name := range []string{"from", "to"} {
		if c.text(name) == "" {
			return badParameter(name + " is missing")
		}
	}
	base := c.compareWith()
	p := c.project
	from, to := base.resolve(c.text("from")), p.resolve(c.text("to"))
	if from == "" || to == "" {
		return notFound("Ref")
	}
	p.db.Take(base.db, from)
	start := from
	if !c.yes("straight") {
		start = p.db.MergeBase(from, to)
	}
	fromTree := ""
	if cm := p.db.Commit(start); cm != nil {
		fromTree = cm.Tree
	}
	diffs := p.db.Diff(fromTree, p.db.Commit(to).Tree)
	over := len(diffs) > c.g.opts.DiffLimit
	diffs = diffs[:min(len(diffs), c.g.opts.DiffLimit)]
	files, commits := []object{}, []object{}
	for _, f := range diffs {
		files = append(files, p.diffJSON(f))
	}
	for _, cm := range p.db.Between(from, to) {
		commits = append(commits, p.commitJSON(c.g, cm))
	}
	return ok(object{
		"commit": p.commitJSON(c.g, p.db.Commit(to)), "commits": commits, "diffs": files,
		"compare_timeout": over, "compare_same_ref": from == to,
		"web_url": p.web(c.g) + "/-/compare/" + from + "..." + to,
	})
}

// compareWith is the project of from: this one, or one of the same forks.
func (c *call) compareWith() *project {
	id := c.text("from_project_id")
	if id == "" || id == itoa(c.project.id) {
		return c.project
	}
	for _, p := range c.g.projects {
		if itoa(p.id) == id && (p == c.project.parent || p.parent == c.project) {
			if !p.canSee(c.user) || !p.canRead(c.user) {
				panic(traffic.Refuse(refuse(403, "403 Forbidden - You don't have access to this fork's parent project")))
			}
			return p
		}
	}
	panic(traffic.Refuse(refuse(400,
		fmt.Sprintf("Target project id:%s is not a fork of project id:%s", id, c.r.PathValue("id")))))
}

func getBranch(c *call) answer {
	name := c.r.PathValue("branch")
	sha, found := c.project.branches[name]
	if !found {
		return notFound("Branch")
	}
	p := c.project
	need, protected := p.protected[name]
	return ok(object{
		"name": name, "commit": p.commitJSON(c.g, p.db.Commit(sha)), "protected": protected,
		"default":             name == p.defaultBranch,
		"merged":              name != p.defaultBranch && slices.Contains(p.db.Ancestors(p.branches[p.defaultBranch]), sha),
		"developers_can_push": !protected || need <= Developer, "developers_can_merge": !protected || need <= Developer,
		"can_push": p.mayPush(c.user, name), "web_url": p.web(c.g) + "/-/tree/" + name,
	})
}

// mayPush reports whether a user may push to a branch.
func (p *project) mayPush(u *user, branch string) bool {
	return p.levelOf(u) >= max(Developer, p.protected[branch])
}
