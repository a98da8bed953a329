// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"fmt"
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/gitdb"
)

// queueBranches is the prefix of the branches that the merge queue makes.
const queueBranches = "gh-readonly-queue/"

// Require sets the names of the checks that have to pass before a pull request can be merged into a
// branch, whichever App they are of.
func (g *GitHub) Require(repo, branch string, checks ...string) {
	defer g.lock()()
	g.mustRepo(repo).required[branch] = checks
}

// unmet returns GitHub's sentence for the first required check of a branch that a commit has not
// passed, "" if it has passed all. The newest check run of a name counts; success, neutral and
// skipped pass.
func (r *repo) unmet(g *GitHub, branch, sha string) string {
	for _, name := range r.required[branch] {
		run, found := (&State{g: g}).Current(r.fullName(), sha, name)
		switch {
		case !found || run.Status != statusCompleted:
			return fmt.Sprintf("Required status check %q is expected.", name)
		case !slices.Contains([]string{"success", "neutral", "skipped"}, run.Conclusion):
			return fmt.Sprintf("Required status check %q is failing.", name)
		}
	}
	return ""
}

// Merge merges a pull request if its head has passed the required checks. Otherwise it returns
// GitHub's refusal, and no commit. MergePull merges whatever is required.
func (g *GitHub) Merge(repo string, number int, user string) (sha, refused string) {
	if refused = g.refusal(repo, number); refused != "" {
		return "", refused
	}
	return g.MergePull(repo, number, user), ""
}

// refusal returns why a pull request cannot be merged or queued, "" if it can.
func (g *GitHub) refusal(repo string, number int) (refused string) {
	defer g.lock()()
	p := g.mustRepo(repo).pull(int64(number))
	if p == nil || p.state != "open" {
		return "Pull Request is not mergeable"
	}
	return p.base.unmet(g, p.baseRef, p.headSHA)
}

// MergeGroup is a commit of a merge queue.
type MergeGroup struct {
	Repo, SHA, Branch string
	// Base and BaseSHA are the branch that it is merged into, and the commit that it is based on.
	Base, BaseSHA string
	number        int
	user          string
}

// Queue puts a pull request into the merge queue. It makes a merge group of this pull request
// alone, on a branch of its own. It returns nil and GitHub's refusal if the head has not passed the
// required checks.
func (g *GitHub) Queue(repo string, number int, user string) (group *MergeGroup, refused string) {
	if refused = g.refusal(repo, number); refused != "" {
		return nil, refused
	}
	g.changePull(repo, number, func(p *pull) {
		base := p.base.branches[p.baseRef]
		group = &MergeGroup{
			Repo: repo, Base: p.baseRef, BaseSHA: base, number: number, user: user,
			Branch: fmt.Sprintf("%s%s/pr-%d-%s", queueBranches, p.baseRef, number, base),
			SHA: p.base.db.PutCommit(gitdb.Commit{
				Message: p.title + " (#" + itoa(int64(number)) + ")", Parents: []string{base, p.headSHA},
				Author: g.userOf(user).person(), When: g.now(), Tree: p.mergedTree(),
			}),
		}
		g.target(p.base).Move(group.Branch, group.SHA, user)
	})
	return group, ""
}

// MergeQueued merges a group if its commit has passed the required checks; otherwise it returns
// GitHub's refusal.
func (g *GitHub) MergeQueued(group *MergeGroup) (refused string) {
	g.changePull(group.Repo, group.number, func(p *pull) {
		if refused = p.base.unmet(g, group.Base, group.SHA); refused != "" {
			return
		}
		p.merged = group.SHA
		p.close(g.now())
		g.target(p.base).Move(group.Base, group.SHA, group.user)
	})
	if refused == "" {
		g.Dequeue(group)
	}
	return refused
}

// Dequeue removes a group and its branch from the queue.
func (g *GitHub) Dequeue(group *MergeGroup) {
	g.changePull(group.Repo, group.number, func(p *pull) {
		g.target(p.base).Move(group.Branch, gitdb.ZeroSHA, group.user)
	})
}

// MergeGroupDelivery builds a merge_group event without sending it: checks_requested, or destroyed
// with its reason.
func (g *GitHub) MergeGroupDelivery(group *MergeGroup, action, reason string) Delivery {
	defer g.lock()()
	r := g.mustRepo(group.Repo)
	in := g.coveringInstallation(0, r)
	cm := r.db[group.SHA].Commit
	who := object{"name": cm.Author.Name, "email": cm.Author.Email}
	body := object{"action": action, "merge_group": object{
		"head_sha": group.SHA, "head_ref": gitdb.Heads + group.Branch,
		"base_sha": group.BaseSHA, "base_ref": gitdb.Heads + group.Base,
		"head_commit": object{
			"id": cm.SHA, "tree_id": cm.Tree, "message": cm.Message, "timestamp": cm.When.Format(time.RFC3339),
			"author": who, "committer": who,
		},
	}}
	if reason != "" {
		body["reason"] = reason
	}
	g.common(body, r, g.userOf(group.user), in)
	return g.deliver(in.app, "merge_group", body)
}
