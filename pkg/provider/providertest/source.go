// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// testConnect: credentials stay at the configured host.
func testConnect(t *testing.T, open func(*testing.T) Env) {
	w := open(t)
	for _, url := range []string{"https://evil.example/acme/app", "", "://", w.BaseURL + ".evil.example/acme/app"} {
		project := w.Project
		project.URL = url
		if _, err := w.Provider.Connect(t.Context(), w.BaseURL, project, w.Credentials); !fault.Is(err, fault.Operator) {
			t.Errorf("project at %q: %v, want an Operator fault", url, err)
		}
	}
	for _, name := range []string{"", "..", "app/../../other", "app?x", "app#"} {
		project := w.Project
		project.Name = name
		if _, err := w.Provider.Connect(t.Context(), w.BaseURL, project, w.Credentials); !fault.Is(err, fault.Operator) {
			t.Errorf("project named %q: %v, want an Operator fault", name, err)
		}
	}
	_, err := w.Provider.Connect(t.Context(), w.BaseURL, w.Project, provider.Credentials{})
	if !fault.Is(err, fault.Operator) {
		t.Errorf("no credentials: %v, want an Operator fault", err)
	}
	testRunToken(t, w)
}

// testRunToken: if the service mints, each run has its own token, which may be revoked twice;
// otherwise revoking changes nothing.
func testRunToken(t *testing.T, w Env) {
	client, reading := connect(t, w), map[string]string{"contents": "read", "metadata": "read"}
	var tokens []provider.Token
	for range 2 {
		token, err := client.CloneToken(t.Context(), reading)
		if err != nil || token.Value == "" || (!token.ExpiresAt.IsZero() && !token.ExpiresAt.After(time.Now())) {
			t.Fatalf("CloneToken: a token of %d bytes that expires at %v, %v", len(token.Value), token.ExpiresAt, err)
		}
		if token.Own != w.Mints {
			t.Errorf("the token is the run's own: %t, want %t", token.Own, w.Mints)
		}
		tokens = append(tokens, token)
	}
	if same := tokens[0].Value == tokens[1].Value; same == w.Mints {
		t.Errorf("two runs have the same token: %t", same)
	}
	for range 2 {
		if err := client.RevokeToken(t.Context(), tokens[0].Value); err != nil {
			t.Errorf("RevokeToken: %v", err)
		}
	}
	if _, err := client.CanWrite(t.Context(), "nobody"); err != nil {
		t.Errorf("after a run's token was revoked: %v", err)
	}
}

func testSource(t *testing.T, open func(*testing.T) Env) {
	t.Run("files", func(t *testing.T) { testFiles(t, open) })
	t.Run("one file", func(t *testing.T) { testFile(t, open(t)) })
	t.Run("a replica that lags", func(t *testing.T) { testLag(t, open) })
	t.Run("a file by its web address", func(t *testing.T) { testFileAt(t, open(t)) })
	t.Run("the default branch", func(t *testing.T) { testDefaultBranch(t, open(t)) })
	t.Run("head", func(t *testing.T) { testHead(t, open(t)) })
	t.Run("pull requests of a commit", func(t *testing.T) { testPulls(t, open(t)) })
	t.Run("an event is completed only without a signature", func(t *testing.T) { testComplete(t, open(t)) })
	if !open(t).SignsBody {
		t.Run("a forged delivery", func(t *testing.T) { testForged(t, open) })
	}
	t.Run("a comment is completed with what its pull request is now", func(t *testing.T) { testComment(t, open(t)) })
	t.Run("a pull request that cannot be read", func(t *testing.T) { testCommentFaults(t, open(t)) })
	t.Run("a request to /incoming", func(t *testing.T) { testIncoming(t, open) })
	t.Run("the newest commit", func(t *testing.T) { testTip(t, open) })
	t.Run("what supersedes an event", func(t *testing.T) { testSupersedes(t, open) })
	t.Run("the difference of two commits", func(t *testing.T) { testDiffer(t, open) })
	t.Run("changed files come from all pages", func(t *testing.T) { testChanged(t, open(t)) })
}

func testDefaultBranch(t *testing.T, w Env) {
	want := w.Service.Commit("main", map[string]string{"x": "y"})
	w.Service.Commit("another", map[string]string{"x": "z"})
	client := connect(t, w)
	if got, err := client.DefaultBranch(t.Context()); err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	w.Service.Fail(ReadRepository, Unavailable, 0)
	if _, err := client.DefaultBranch(t.Context()); !fault.Is(err, fault.Transient) {
		t.Errorf("an outage: %v, want a Transient fault", err)
	}
}

func testHead(t *testing.T, w Env) {
	sha := w.Service.Commit("main", map[string]string{"x": "y"})
	client := connect(t, w)
	head, err := client.Head(t.Context(), &v1alpha1.GitEventSpec{SHA: sha, Project: w.Project})
	if err != nil || head.SHA != sha || head.Commit.Title == "" || head.Commit.URL == "" || head.Project != w.Project {
		t.Errorf("not completed: %+v, %v", head, err)
	}
	known := v1alpha1.Commit{Title: "known", URL: "https://x"}
	head, err = client.Head(t.Context(), &v1alpha1.GitEventSpec{SHA: sha, Project: w.Project, Commit: &known})
	if err != nil || head.Commit != known {
		t.Errorf("what the payload said was changed: %+v, %v", head, err)
	}
}

func testPulls(t *testing.T, w Env) {
	base := w.Service.Commit("main", map[string]string{"x": "y"})
	w.Service.Commit("of-a-pull-request", map[string]string{"x": "z"})
	event := w.Service.PullRequest("of-a-pull-request", "dev")
	client := connect(t, w)
	want := []git.Pull{{
		Number: event.PullRequest.Number, Open: true, SHA: event.SHA,
		BaseRef: "main", HeadRef: "of-a-pull-request", HeadProjectID: w.Project.ID,
	}}
	if got, err := client.Pulls(t.Context(), event.SHA); err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("the head of a pull request: %v, %v, want %v", got, err, want)
	}
	if got, err := client.Pulls(t.Context(), base); err != nil || len(got) != 0 {
		t.Errorf("a commit of the base branch: %v, %v, want none", got, err)
	}
	if got, err := client.Pulls(t.Context(), strings.Repeat("ab", 20)); got != nil || !fault.Is(err, fault.Transient) {
		t.Errorf("a commit that is not there: %v, %v, want a Transient fault", got, err)
	}
}
