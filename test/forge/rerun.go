// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// RerunEvent says which re-run button was pressed.
type RerunEvent struct {
	Repo string
	// CheckID is the check run whose "Re-run" was pressed; 0 is "Re-run all checks" of the App's
	// suite on SHA.
	CheckID int64
	SHA     string
	AppID   int64
	Sender  string
	// Action is rerequested, or another one that GitHub tells of checks; empty is rerequested.
	Action string
}

// PressRerun clicks a re-run button and builds its event, without sending it. It does not check
// the user's rights. The suite is queued again; the check runs stay as they are.
func (g *GitHub) PressRerun(e RerunEvent) Delivery {
	defer g.lock()()
	r := g.mustRepo(e.Repo)
	in := g.coveringInstallation(e.AppID, r)
	action := cmp.Or(e.Action, "rerequested")
	body := object{"action": action}
	g.common(body, r, g.userOf(e.Sender), in)
	if e.CheckID == 0 {
		if o := r.db[e.SHA]; o == nil || o.Commit == nil {
			invalidUse("PressRerun: no commit %s in %s", e.SHA, e.Repo)
		}
		suite := g.suiteJSON(in.app, r, e.SHA, g.happened(r))
		suite["head_commit"], suite["app"] = r.eventCommit(g, r.db[e.SHA].Commit), in.app.json(g)
		body["check_suite"] = suite
		return g.deliver(in.app, "check_suite", body)
	}
	k := g.findCheck(e.Repo, e.CheckID)
	if k == nil {
		invalidUse("PressRerun: no check run %d in %s", e.CheckID, e.Repo)
	}
	check := k.json(g)
	check["check_suite"] = g.suiteJSON(k.app, r, k.headSHA, g.happened(r))
	body["check_run"] = check
	return g.deliver(k.app, "check_run", body)
}

// suiteJSON is a suite that was asked to run again at that time.
func (g *GitHub) suiteJSON(a *app, r *repo, sha string, at time.Time) object {
	k := &checkRun{repo: r, headSHA: sha}
	id := g.suiteOf(a, r, sha)
	self := r.api(g) + "/check-suites/" + itoa(id)
	o := object{
		"id": id, "node_id": nodeID("CS", id), "head_branch": nil, "head_sha": sha, "status": statusQueued, "conclusion": nil,
		"url": self, "check_runs_url": self + "/check-runs", "before": zeroSHA, "after": sha,
		"pull_requests": k.pullRequests(g),
		"created_at":    at.Format(time.RFC3339), "updated_at": at.Format(time.RFC3339),
		"rerequestable": true, "runs_rerequestable": true,
		"latest_check_runs_count": len((&State{g: g}).ChecksFor(r.fullName(), sha)),
	}
	for _, branch := range slices.Sorted(maps.Keys(r.branches)) {
		if r.branches[branch] == sha { // a fork's is not told
			o["head_branch"] = branch
			break
		}
	}
	return o
}
