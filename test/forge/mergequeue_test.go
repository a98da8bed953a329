// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"strings"
	"testing"
)

// A required check blocks while it is missing, pending or failed, and passes with success, neutral
// or skipped. The newest one counts.
func TestRequiredChecks(t *testing.T) {
	w := newFixture(t, Options{})
	tok := w.token(w.inst, nil)
	w.Require("org/app", "main", "ci")
	sha := w.Commit("org/app", "topic", Change{Files: map[string]string{"a": "b"}})
	number := w.OpenPullRequest(NewPull{Base: "org/app", HeadBranch: "topic"})
	post := func(name, conclusion string) {
		t.Helper()
		body := map[string]any{"name": name, "head_sha": sha}
		if conclusion != "" {
			body["conclusion"] = conclusion
		}
		if got := w.do("POST", "/api/v3/repos/org/app/check-runs", tok, body); got.Status != 201 {
			t.Fatalf("posting the check: %d %s", got.Status, got.message())
		}
	}
	for _, step := range []struct{ name, conclusion, refused string }{
		{"other", "success", "is expected"}, {"ci", "", "is expected"}, {"ci", "failure", "is failing"},
		{"ci", "cancelled", "is failing"}, {"ci", "skipped", ""}, {"ci", "neutral", ""}, {"ci", "", "is expected"},
		{"ci", "success", ""},
	} {
		post(step.name, step.conclusion)
		if got := w.refusal("org/app", number); !strings.Contains(got, step.refused) || (got == "") != (step.refused == "") {
			t.Errorf("after %s: %q: %q, want %q", step.name, step.conclusion, got, step.refused)
		}
	}
	group, refused := w.Queue("org/app", number, "octocat")
	if refused != "" || !strings.Contains(w.MergeQueued(group), "is expected") {
		t.Fatalf("the queue: %q", refused)
	}
	sha = group.SHA
	post("ci", "skipped")
	if refused := w.MergeQueued(group); refused != "" || w.Branches("org/app")["main"] != group.SHA {
		t.Errorf("the group is not merged: %q", refused)
	}
	if _, refused := w.Merge("org/app", number, "octocat"); refused == "" {
		t.Error("it is merged twice")
	}
}
