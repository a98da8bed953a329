// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/gitdb"
)

// maxPushCommits is how many commits a push event lists.
const maxPushCommits = 2048

// PushEvent says which push to tell of.
type PushEvent struct {
	Repo string
	// Ref is a full ref such as refs/heads/main.
	Ref string
	// AppID picks the App whose webhook gets it; 0 is the first installed.
	AppID int64
	// Before, After and Sender default to those of the ref's last change.
	Before, After, Sender string
}

// PullEvent says which pull request event to tell of.
type PullEvent struct {
	Repo   string
	Number int
	// Action is opened, synchronize, reopened, ready_for_review, closed, labeled, edited and so on.
	Action string
	AppID  int64
	// Sender defaults to the author.
	Sender string
	// Label is the label of labeled and unlabeled.
	Label string
}

// happened is the time of the next event of a repository or comment there. Each has a second of its
// own, because times of events are told in seconds; so they run ahead of the clock where more
// happens than one thing a second. The caller holds mu.
func (g *GitHub) happened(r *repo) time.Time {
	now := g.now()
	if !now.After(r.lastEvent) {
		now = r.lastEvent.Add(time.Second)
	}
	r.lastEvent = now
	return now
}

// PushDelivery builds a push event as it stands, without sending it. Another
// one for the same change is a push of its own.
func (g *GitHub) PushDelivery(e PushEvent) Delivery {
	defer g.lock()()
	r := g.mustRepo(e.Repo)
	up, known := r.updates[e.Ref]
	if !known && (e.Before == "" || e.After == "") {
		invalidUse("PushDelivery: %s of %s never changed", e.Ref, e.Repo)
	}
	up.before, up.after = cmp.Or(e.Before, up.before), cmp.Or(e.After, up.after)
	if o := r.db[up.after]; up.after != zeroSHA && (o == nil || o.Commit == nil) {
		invalidUse("PushDelivery: no commit %s in %s", up.after, e.Repo)
	}
	if e.Sender != "" || up.by == nil {
		up.by = g.userOf(cmp.Or(e.Sender, "octocat"))
	}
	in := g.coveringInstallation(e.AppID, r)
	return g.deliver(in.app, "push", g.pushPayload(r, e.Ref, up, in))
}

func (g *GitHub) pushPayload(r *repo, ref string, up refUpdate, in *installation) object {
	commits := []object{}
	var head any
	if up.after != zeroSHA {
		head = r.eventCommit(g, r.db[up.after].Commit)
		from := up.before
		if from == zeroSHA && strings.HasPrefix(ref, "refs/heads/") && ref != "refs/heads/"+r.defaultBranch {
			// A new branch tells of what the default branch has not.
			from = r.branches[r.defaultBranch]
		}
		list := r.db.Between(from, up.after)
		if strings.HasPrefix(ref, "refs/tags/") {
			list = nil
		}
		for _, cm := range list[max(0, len(list)-maxPushCommits):] {
			commits = append(commits, r.eventCommit(g, cm))
		}
	}
	body := object{
		"ref": ref, "before": up.before, "after": up.after, "base_ref": nil,
		"created": up.before == zeroSHA, "deleted": up.after == zeroSHA, "forced": up.forced,
		"compare": r.html(g) + "/compare/" + up.before[:12] + "..." + up.after[:12],
		"commits": commits, "head_commit": head,
		"pusher": object{"name": up.by.login, "email": up.by.email()},
	}
	g.common(body, r, up.by, in)
	// A push event's repository has three fields of an older shape.
	body["repository"].(object)["created_at"] = r.created.Unix()
	body["repository"].(object)["pushed_at"] = g.happened(r).Unix()
	body["repository"].(object)["master_branch"] = r.defaultBranch
	return body
}

// eventCommit is a commit as push events show it.
func (r *repo) eventCommit(g *GitHub, cm *gitdb.Commit) object {
	added, removed, modified := gitdb.TouchedPaths(r.db.DiffOf(cm))
	who := object{"name": cm.Author.Name, "email": cm.Author.Email, "username": cm.Author.Name}
	return object{
		"id": cm.SHA, "tree_id": cm.Tree, "distinct": true, "message": cm.Message,
		"timestamp": cm.When.Format(time.RFC3339), "url": r.html(g) + "/commit/" + cm.SHA,
		"author": who, "committer": who, "added": added, "removed": removed, "modified": modified,
	}
}

// common adds what every event of a repository carries.
func (g *GitHub) common(body object, r *repo, sender *account, in *installation) {
	body["repository"] = r.json(g)
	body["sender"] = sender.json(g)
	if !isHook(in.app) {
		body["installation"] = object{"id": in.id, "node_id": nodeID("I", in.id)}
	}
	if r.owner.kind == "Organization" {
		body["organization"] = object{"login": r.owner.login, "id": r.owner.id, "node_id": nodeID("O", r.owner.id),
			"url": g.core.BaseURL + "/api/v3/orgs/" + r.owner.login}
	}
}

// PullRequestDelivery builds a pull_request event as it stands, without
// sending it. It changes nothing but when the pull request was last updated:
// close the pull request first, then build "closed".
func (g *GitHub) PullRequestDelivery(e PullEvent) Delivery {
	defer g.lock()()
	r := g.mustRepo(e.Repo)
	p := r.pull(int64(e.Number))
	if p == nil {
		invalidUse("PullRequestDelivery: no pull request %s#%d", e.Repo, e.Number)
	}
	sender := p.user
	if e.Sender != "" {
		sender = g.userOf(e.Sender)
	}
	in := g.coveringInstallation(e.AppID, r)
	p.updated = g.happened(r)
	body := object{"action": e.Action, "number": p.number, "pull_request": p.full(g)}
	switch e.Action {
	case "synchronize":
		body["before"], body["after"] = cmp.Or(p.before, zeroSHA), p.headSHA
	case "labeled", "unlabeled":
		body["label"] = labelJSON(p, max(0, slices.Index(p.labels, e.Label)), e.Label)
	}
	g.common(body, r, sender, in)
	return g.deliver(in.app, "pull_request", body)
}

// PingDelivery builds the ping GitHub sends when an App's webhook is set up.
func (g *GitHub) PingDelivery(appID int64) Delivery {
	defer g.lock()()
	a := g.mustApp(appID)
	return g.deliver(a, "ping", object{
		"zen": "Design for failure.", "hook_id": a.HookID,
		"hook": object{"type": "App", "id": a.HookID, "name": "web", "active": true, "app_id": a.ID,
			"events": []string{"push", "pull_request"},
			"config": object{"content_type": "json", "insecure_ssl": "0", "secret": "********"}},
	})
}

// EventDelivery builds an event with a body of the test's own, for what the
// forge has no builder for. The body gets no field added.
func (g *GitHub) EventDelivery(appID int64, event string, body map[string]any) Delivery {
	defer g.lock()()
	return g.deliver(g.mustApp(appID), event, body)
}

func (g *GitHub) mustApp(id int64) *app {
	a := g.apps[id]
	if a == nil {
		invalidUse("no app %d", id)
	}
	return a
}

func (g *GitHub) coveringInstallation(appID int64, r *repo) *installation {
	in := g.installationFor(appID, r)
	if in == nil && r.hook != nil {
		in = r.hook
	}
	if in == nil {
		invalidUse("no installation covers %s", r.fullName())
	}
	return in
}
