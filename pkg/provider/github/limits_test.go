// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"net/http"
	"testing"
	"time"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// TestNothingIsCalledWhileLimited (E17): by no client of the installation, not even for a token.
func TestNothingIsCalledWhileLimited(t *testing.T) {
	f, w := openFake(t, forge.Options{})
	clock := &clock{now: time.Now()}
	p := New(Options{Now: clock.Now})
	sha := f.Commit("main", map[string]string{"x": "y"})
	ask := func(repo string) *fault.Error {
		t.Helper()
		project := w.Project
		if repo != project.Name {
			project.Name, project.ID, project.URL = repo, project.ID+1, w.BaseURL+"/acme/"+repo
		}
		client, err := p.Connect(t.Context(), w.BaseURL, project, w.Credentials)
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Files(t.Context(), sha, ".tekton")
		return fault.Of(err)
	}
	f.Inject(forge.Fault{Route: forge.RouteTree, Count: 1, Do: forge.PrimaryRateLimit(time.Now().Add(10 * time.Minute))})
	if got := ask("app"); got == nil || got.Class != fault.Throttled {
		t.Fatalf("got %+v, want a Throttled fault", got)
	}
	calls := f.Count("")
	for _, repo := range []string{"app", "other"} {
		if got := ask(repo); got == nil || got.Class != fault.Throttled || got.RetryAfter < 9*time.Minute {
			t.Errorf("%s: got %+v, want a Throttled fault until the reset", repo, got)
		}
	}
	if got := f.Count("") - calls; got != 0 {
		t.Errorf("%d calls were made while limited", got)
	}
	clock.add(11 * time.Minute)
	if got := ask("app"); got != nil {
		t.Errorf("after the reset: %+v", got)
	}
}

func TestClassifiedKnowsGoGitHubsOwnRefusals(t *testing.T) {
	wait := 90 * time.Second
	cases := []struct {
		name  string
		err   error
		class fault.Class
		wait  time.Duration
	}{
		{"the primary limit it remembers", &gh.RateLimitError{Rate: gh.Rate{Reset: gh.Timestamp{Time: time.Now().Add(wait)}}, Response: &http.Response{}}, fault.Throttled, wait},
		{"one that has just ended", &gh.RateLimitError{Response: &http.Response{}}, fault.Throttled, secondaryWait},
		{"the secondary limit it remembers", &gh.AbuseRateLimitError{RetryAfter: &wait, Response: &http.Response{}}, fault.Throttled, wait},
		{"without a time", &gh.AbuseRateLimitError{Response: &http.Response{}}, fault.Throttled, secondaryWait},
		{"our own deadline", context.DeadlineExceeded, fault.Transient, 0},
		{"an answer still being computed", &gh.AcceptedError{}, fault.Transient, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := fault.Of(failed("x", c.err))
			if f.Class != c.class || f.Reason == "Error" || f.RetryAfter > c.wait || f.RetryAfter < c.wait-5*time.Second {
				t.Errorf("got %+v, want %s after %s", f, c.class, c.wait)
			}
		})
	}
	if failed("x", nil) != nil {
		t.Error("nil became an error")
	}
}
