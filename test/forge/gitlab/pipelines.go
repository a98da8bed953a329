// SPDX-License-Identifier: Apache-2.0

package gitlab

import "time"

// pipeline is what holds the statuses of a commit on a ref.
type pipeline struct {
	id      int64
	project *project
	sha     string
	ref     string
	user    *user
	created time.Time
}

// Pipeline is a pipeline of a commit as a test sees it.
type Pipeline struct {
	ID     int64
	Ref    string
	Status string // of the latest statuses together
}

// Pipelines lists the pipelines of a commit in a project, oldest first.
func (s *State) Pipelines(project, sha string) []Pipeline {
	var out []Pipeline
	for _, pl := range s.g.pipelines {
		if key(pl.project.path) == key(project) && pl.sha == sha {
			out = append(out, Pipeline{ID: pl.id, Ref: pl.ref, Status: s.g.pipelineStatus(pl)})
		}
	}
	return out
}

// Pipelines is State.Pipelines.
func (g *GitLab) Pipelines(project, sha string) []Pipeline {
	return locked(g, func(s *State) []Pipeline { return s.Pipelines(project, sha) })
}

// NativePipeline makes a pipeline as GitLab's own CI does, with one job that
// has succeeded. That of a merge request is on its refs/merge-requests/N/head.
func (g *GitLab) NativePipeline(project, ref, sha string) int64 {
	defer g.lock()()
	p, by := g.mustProject(project), g.userOf("octocat")
	if p.db.Commit(sha) == nil {
		invalidUse("NativePipeline: no commit %s in %s", sha, project)
	}
	pl := &pipeline{id: g.core.NextID(), project: p, sha: sha, ref: ref, user: by, created: g.now()}
	g.pipelines = append(g.pipelines, pl)
	g.statuses = append(g.statuses, &status{
		id: g.core.NextID(), pipeline: pl, name: "job", state: "success", ref: ref, user: by, created: g.now(),
		finished: g.now(),
	})
	return pl.id
}
