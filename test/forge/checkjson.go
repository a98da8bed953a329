// SPDX-License-Identifier: Apache-2.0

package forge

import "time"

func (k *checkRun) json(g *GitHub) object {
	id := itoa(k.id)
	o := object{
		"id": k.id, "node_id": nodeID("CR", k.id), "head_sha": k.headSHA, "name": k.name,
		"external_id": k.externalID, "details_url": k.detailsURL, "status": k.status, "conclusion": nil,
		"url": k.repo.api(g) + "/check-runs/" + id, "html_url": k.repo.html(g) + "/runs/" + id,
		"started_at": k.started.Format(time.RFC3339), "completed_at": nil,
		"output": object{
			"title": k.title, "summary": k.summary, "text": k.text, "annotations_count": len(k.annotations),
			"annotations_url": k.repo.api(g) + "/check-runs/" + id + "/annotations",
		},
		"check_suite": object{"id": k.suite}, "app": k.app.json(g), "pull_requests": k.pullRequests(g),
	}
	if k.conclusion != "" {
		o["conclusion"] = k.conclusion
	}
	if g.opts.ChecksWithoutApp {
		o["app"] = nil
	}
	if k.completed != nil {
		o["completed_at"] = k.completed.Format(time.RFC3339)
	}
	return o
}

// pullRequests are the open ones of the repository's own branches whose head
// is the commit; those of forks are left out, as GitHub does.
func (k *checkRun) pullRequests(g *GitHub) []object {
	out := []object{}
	for _, p := range k.repo.pulls {
		if p.state == "open" && p.head == k.repo && p.headSHA == k.headSHA {
			out = append(out, object{
				"id": p.id, "number": p.number, "url": k.repo.api(g) + "/pulls/" + itoa(int64(p.number)),
				"head": object{"ref": p.headRef, "sha": p.headSHA, "repo": object{"id": p.head.id, "name": p.head.name}},
				"base": object{"ref": p.baseRef, "sha": p.baseSHA(), "repo": object{"id": p.base.id, "name": p.base.name}},
			})
		}
	}
	return out
}
