// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"maps"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// Request is one call a client made, in the order of arrival.
type Request = traffic.Request

// Write is one mutating call a client made, in the order the forge decided
// them: for two applied writes, the order in which they took effect.
type Write struct {
	N       int
	Time    time.Time // arrival
	Method  string
	Path    string
	Route   string
	Project string // full path, "" if there is no such project
	Body    map[string]any
	Status  int  // answered; 0 when the client got no answer
	Applied bool // the forge's state changed, whatever the client was told

	// Of commit statuses, as the client asked for them.
	SHA         string
	Name        string
	State       string
	Ref         string
	TargetURL   string
	Description string
	StatusID    int64 // of what came of it; 0 when refused
	PipelineID  int64

	// Of notes on merge requests.
	MergeRequest int64
	NoteID       int64
	Note         string
}

// State is the forge as WaitFor shows it to its condition.
type State struct {
	traffic.View[Write]
	g *GitLab
}

// WritesForStatus lists the writes of statuses with this name on this commit,
// applied or not. An empty name is every status of the commit.
func (s *State) WritesForStatus(project, sha, name string) []Write {
	var out []Write
	for _, w := range s.Writes() {
		if w.Route == RouteStatusCreate && key(w.Project) == key(project) && w.SHA == sha && (name == "" || w.Name == name) {
			out = append(out, w)
		}
	}
	return out
}

// WritesForStatus is State.WritesForStatus.
func (g *GitLab) WritesForStatus(project, sha, name string) []Write {
	return locked(g, func(s *State) []Write { return s.WritesForStatus(project, sha, name) })
}

func locked[T any](g *GitLab, read func(*State) T) T {
	defer g.lock()()
	return read(&State{traffic.ViewOf(g.Host), g})
}

// logWrite appends to the write log. The caller holds mu.
func (c *call) logWrite(status int, applied bool) *Write {
	if c.params == nil {
		// A fault decided: read what the client wanted. A body that cannot be
		// read leaves what the path says.
		c.params, _ = c.readParams()
	}
	w := &Write{
		Time: c.at, Method: c.r.Method, Path: c.r.URL.Path, Route: c.rt.name,
		Status: status, Applied: applied, Body: maps.Clone(c.params),
	}
	delete(w.Body, "private_token")
	if p := c.findProject(); p != nil {
		w.Project = p.path
	}
	switch c.rt.name {
	case RouteStatusCreate:
		c.describeStatus(w)
	case RouteNoteCreate, RouteNoteUpdate, RouteNoteDelete:
		w.MergeRequest, w.NoteID, w.Note = c.number("iid"), c.number("note"), c.text("body")
		if c.note != nil {
			w.NoteID = c.note.id
		}
	}
	w.N = traffic.Log(c.g.Host, w)
	return w
}

func (c *call) describeStatus(w *Write) {
	w.SHA, w.Name, w.State = c.r.PathValue("sha"), c.statusName(), c.text("state")
	w.Ref, w.TargetURL, w.Description = c.text("ref"), c.text("target_url"), c.text("description")
	if c.status != nil {
		w.StatusID, w.PipelineID, w.SHA = c.status.id, c.status.pipeline.id, c.status.pipeline.sha
	}
}
