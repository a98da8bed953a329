// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"encoding/json"
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
	Repo    string // owner/name
	Body    map[string]any
	Status  int  // answered; 0 when the client got no answer
	Applied bool // the forge's state changed, whatever the client was told

	// Of check runs: what the client asked for, in the forge's words (a conclusion means
	// completed). Name and HeadSHA of an update are those of the check run it names.
	CheckRunID  int64
	HeadSHA     string
	Name        string
	ExternalID  string
	CheckStatus string
	Conclusion  string
	Title       string
}

// State is the forge as WaitFor shows it to its condition.
type State struct {
	traffic.View[Write]
	g *GitHub
}

// WritesForCheck lists the writes of the check runs with this name on this
// commit, applied or not. An empty name is every check run of the commit.
func (s *State) WritesForCheck(repo, sha, name string) []Write {
	var out []Write
	for _, w := range s.Writes() {
		if key(w.Repo) == key(repo) && w.HeadSHA == sha && w.HeadSHA != "" && (name == "" || w.Name == name) {
			out = append(out, w)
		}
	}
	return out
}

// WritesForCheck is State.WritesForCheck.
func (g *GitHub) WritesForCheck(repo, sha, name string) []Write {
	return locked(g, func(s *State) []Write { return s.WritesForCheck(repo, sha, name) })
}

func locked[T any](g *GitHub, read func(*State) T) T {
	defer g.lock()()
	return read(&State{traffic.ViewOf(g.Host), g})
}

// logWrite appends to the write log. The caller holds mu.
func (c *call) logWrite(status int, applied bool) *Write {
	w := &Write{
		Time: c.at, Method: c.r.Method, Path: c.r.URL.Path, Route: c.rt.name,
		Status: status, Applied: applied,
	}
	if o := c.r.PathValue("owner"); o != "" {
		w.Repo = o + "/" + c.r.PathValue("repo")
	}
	// A body that is no JSON object leaves Body nil.
	_ = json.Unmarshal(c.body, &w.Body)
	if c.rt.name == RouteCheckCreate || c.rt.name == RouteCheckUpdate {
		c.describeCheck(w)
	}
	w.N = traffic.Log(c.g.Host, w)
	if c.g.opts.OnWrite != nil {
		c.g.opts.OnWrite(*w)
	}
	return w
}

// describeCheck fills the fields of a check run's write.
func (c *call) describeCheck(w *Write) {
	w.Name, w.HeadSHA = text(w.Body, "name"), text(w.Body, "head_sha")
	w.ExternalID, w.Conclusion = text(w.Body, "external_id"), text(w.Body, "conclusion")
	w.CheckStatus = text(w.Body, "status")
	if w.Conclusion != "" {
		w.CheckStatus = statusCompleted
	}
	if out, isObject := w.Body["output"].(map[string]any); isObject {
		w.Title = text(out, "title")
	}
	run := c.check
	if run == nil && c.rt.name == RouteCheckUpdate {
		run = c.g.findCheck(w.Repo, c.number("id"))
	}
	if run == nil {
		return
	}
	w.CheckRunID, w.Name, w.HeadSHA = run.id, run.name, run.headSHA
	if w.ExternalID == "" {
		w.ExternalID = run.externalID
	}
}

func text(m map[string]any, name string) string {
	s, _ := m[name].(string)
	return s
}
