// SPDX-License-Identifier: Apache-2.0

package github

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// TestRateLimitStopsCalls (E17): by no client of the installation, not even for a token.
func TestRateLimitStopsCalls(t *testing.T) {
	f, w := openFake(t, forge.Options{})
	clock := clocktesting.NewFakeClock(time.Now())
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
	clock.Step(11 * time.Minute)
	if got := ask("app"); got != nil {
		t.Errorf("after the reset: %+v", got)
	}
}
