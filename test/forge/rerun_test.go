// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"encoding/json"
	"testing"
)

// A re-run event names the commit, the App and, for a branch of the repository itself, branch and
// pull requests. It changes no check run, and no two events have the same body.
func TestPressRerun(t *testing.T) {
	w := newFixture(t, Options{})
	sha := w.Commit("org/app", "topic", Change{Files: map[string]string{"a": "1"}})
	n := w.OpenPullRequest(NewPull{Base: "org/app", HeadBranch: "topic", Author: "dev"})
	one, two := w.PressRerun(RerunEvent{Repo: "org/app", SHA: sha, Sender: "dev"}),
		w.PressRerun(RerunEvent{Repo: "org/app", SHA: sha, Sender: "dev"})
	if one.Event != "check_suite" || one.Action != "rerequested" || string(one.Body) == string(two.Body) {
		t.Errorf("%s %s: %s", one.Event, one.Action, one.Body)
	}
	var e struct {
		Suite struct {
			Branch     *string `json:"head_branch"`
			SHA        string  `json:"head_sha"`
			Status     string
			Conclusion *string
			Pulls      []struct{ Number int } `json:"pull_requests"`
			App        struct{ ID int64 }
		} `json:"check_suite"`
		Sender struct{ Login string }
	}
	must(t, json.Unmarshal(one.Body, &e))
	s := e.Suite
	if s.Branch == nil || *s.Branch != "topic" || s.SHA != sha {
		t.Errorf("the suite is of branch %v at %s, want topic at %s", s.Branch, s.SHA, sha)
	}
	if s.Status != "queued" || s.Conclusion != nil {
		t.Errorf("the suite is %s %v, want queued", s.Status, s.Conclusion)
	}
	if len(s.Pulls) != 1 || s.Pulls[0].Number != n {
		t.Errorf("the suite is of pull requests %v, want %d", s.Pulls, n)
	}
	if s.App.ID == 0 || e.Sender.Login != "dev" {
		t.Errorf("the suite is of App %d, sent by %s, want dev", s.App.ID, e.Sender.Login)
	}
}
