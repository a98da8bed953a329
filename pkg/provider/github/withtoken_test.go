// SPDX-License-Identifier: Apache-2.0

package github

import (
	"strings"
	"testing"
	"time"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/test/forge"
)

func TestBaseURLIsWhatTheRepositoryConfigures(t *testing.T) {
	t.Parallel()
	for given, want := range map[[2]string]string{
		{"", ""}:                                         "https://github.com",
		{"", "https://GitHub.com/acme/app"}:              "https://github.com",
		{"", "https://ghe.example:8443/acme/app"}:        "https://ghe.example:8443",
		{"https://ghe.example/", "https://github.com/a"}: "https://ghe.example",
		{"https://ghe.example/api/v3", ""}:               "https://ghe.example",
		{"https://api.github.com", ""}:                   "https://github.com",
		{"ghe.example", ""}:                              "https://ghe.example",
		{"api.github.com", ""}:                           "https://github.com",
	} {
		if got := BaseURL(given[0], given[1], v1alpha1.Project{}); got != want {
			t.Errorf("%q: %s, want %s", given, got, want)
		}
	}
}

// A status has a state that GitHub knows and at most 140 characters, and names its run.
func TestStatusFitsGitHub(t *testing.T) {
	t.Parallel()
	f, w := openTokenFake(t)
	client, head := connectTo(t, w.Provider, w.BaseURL, w.Project, w.Credentials), headOf(f.fake, w.Project)
	run := "run-" + strings.Repeat("x", 200)
	for i, c := range []struct {
		check status.Check
		state string
	}{
		{status.Check{State: status.Queued}, "pending"},
		{status.Check{State: status.InProgress}, "pending"},
		{status.Check{State: status.Completed, Conclusion: status.Success}, "success"},
		{status.Check{State: status.Completed, Conclusion: status.Failure}, "failure"},
		{status.Check{State: status.Completed, Conclusion: status.Cancelled}, "error"},
		{status.Check{State: status.Completed, Conclusion: status.Skipped}, "success"},
	} {
		c.check.Name, c.check.ExternalID = "CI / build "+string(rune('a'+i)), run
		c.check.Title, c.check.DetailsURL = strings.Repeat("é", 200), "ftp://console"
		if _, err := client.Put(t.Context(), head, "", c.check, false); err != nil {
			t.Fatal(err)
		}
		all := f.StatusesFor(testRepo, head.SHA)
		if got := all[len(all)-1]; got.State != c.state || got.Context != c.check.Name || got.URL != "" ||
			len([]rune(got.Description)) != maxDescription || !hasMark(&gh.RepoStatus{Description: &got.Description}, run) {
			t.Errorf("%+v, want the state %s", got, c.state)
		}
	}
}

// GitHub refuses emoji in a description, and the last line of a log may have some.
func TestStatusHasNoEmoji(t *testing.T) {
	t.Parallel()
	f, w := openTokenFake(t)
	client, head := connectTo(t, w.Provider, w.BaseURL, w.Project, w.Credentials), headOf(f.fake, w.Project)
	for title, want := range map[string]string{"Failed: 💥 it broke": "Failed: it broke – ✗ 2 tests", "💥": "– ✗ 2 tests"} {
		c := check(status.Completed, status.Failure)
		c.Title, c.LogLine = title, "✗ 🧪2 tests"
		if _, err := client.Put(t.Context(), head, "", c, false); err != nil {
			t.Fatal(err)
		}
		all := f.StatusesFor(testRepo, head.SHA)
		if got := all[len(all)-1].Description; got != want+" ("+c.ExternalID+")" {
			t.Errorf("%q is shown as %q, want %q", title, got, want)
		}
	}
}

// Another product, or a user, may post a status of the context while a run is in progress. The
// result of the run is shown anyway.
func TestStatusOfAnotherProductHidesNoResult(t *testing.T) {
	t.Parallel()
	f, w := openTokenFake(t)
	client, head := connectTo(t, w.Provider, w.BaseURL, w.Project, w.Credentials), headOf(f.fake, w.Project)
	put := func(c status.Check) {
		t.Helper()
		if _, err := client.Put(t.Context(), head, "", c, false); err != nil {
			t.Fatal(err)
		}
	}
	running, failed := check(status.InProgress, ""), check(status.Completed, status.Failure)
	put(running)
	f.postStatus(head.SHA, running.Name, stateSuccess, "looks good to me")
	put(failed)
	if got := f.current(head.SHA); got.State != stateFailure {
		t.Errorf("GitHub shows %+v, want the failure", got)
	}
	newer := running
	newer.ExternalID = "run-2"
	put(newer)
	put(failed)
	if got := f.current(head.SHA); got.State != statePending {
		t.Errorf("GitHub shows %+v, want the newer run", got)
	}
}

// What Pipelines-as-Code has left pending gets its result, and nothing else does.
func TestStatusOfPipelinesAsCodeIsConcluded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ state, description, want string }{
		"pending":                     {statePending, "CI has Started", stateFailure},
		"concluded":                   {stateSuccess, "Success", stateSuccess},
		"pending, of a run of ours":   {statePending, "CI has Started (run-2)", statePending},
		"none of the pipeline's name": {"", "", ""},
	} {
		f, w := openTokenFake(t)
		client, head := connectTo(t, w.Provider, w.BaseURL, w.Project, w.Credentials), headOf(f.fake, w.Project)
		c := check(status.Completed, status.Failure)
		c.OnlyOpen, c.Adopted = true, true
		if test.state != "" {
			f.postStatus(head.SHA, c.Name, test.state, test.description)
		}
		for range 2 { // as after a lost answer
			if _, err := client.Put(t.Context(), head, "", c, false); err != nil {
				t.Fatal(err)
			}
		}
		if got := f.current(head.SHA); got.State != test.want {
			t.Errorf("%s: GitHub shows %+v, want %q", name, got, test.want)
		}
	}
}

// GitHub takes 1,000 statuses of a context on a commit: repetition posts none.
func TestStatusThatIsShownIsNotPostedAgain(t *testing.T) {
	t.Parallel()
	f, w := openTokenFake(t)
	client, head := connectTo(t, w.Provider, w.BaseURL, w.Project, w.Credentials), headOf(f.fake, w.Project)
	for range 3 {
		if _, err := client.Put(t.Context(), head, "", check(status.InProgress, ""), false); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.Count(forge.RouteStatusCreate); got != 1 {
		t.Errorf("%d statuses were posted, want 1", got)
	}
}

// The token goes where the Repository says and nowhere else, and comes back for the clone.
func TestTokenOfTheRepository(t *testing.T) {
	t.Parallel()
	f, w := openTokenFake(t)
	other := "https://elsewhere.example"
	if _, err := w.Provider.Connect(t.Context(), other, w.Project, w.Credentials); !fault.Is(err, fault.Operator) ||
		!strings.Contains(err.Error(), "git_provider.url") {
		t.Errorf("another host than the repository's: %v", err)
	}
	c := w.Credentials
	c.Reach.Allowed = nil
	client := connectTo(t, w.Provider, w.BaseURL, w.Project, c)
	if _, err := client.DefaultBranch(t.Context()); fault.Of(err) == nil || fault.Of(err).Reason != "AddressRefused" {
		t.Errorf("an address inside the network that no administrator lists: %v", err)
	}
	for token, reason := range map[string]string{" ": fault.ReasonCredentialsMissing, "a b": fault.ReasonCredentialsInvalid} {
		c.Token = token
		_, err := w.Provider.Connect(t.Context(), w.BaseURL, w.Project, c)
		if got := fault.Of(err); got == nil || got.Reason != reason || strings.Contains(got.Message, "a b") {
			t.Errorf("%q: %v, want %s", token, err, reason)
		}
	}
	own, err := connectTo(t, w.Provider, w.BaseURL, w.Project, w.Credentials).CloneToken(t.Context(), nil)
	if err != nil || own.Value != f.token || own.Own {
		t.Errorf("the clone token is %+v, %v, want the Repository's", own, err)
	}
}

// A token that several tenants use reads nothing but the event's repository.
func TestSharedTokenReadsNoOtherRepository(t *testing.T) {
	t.Parallel()
	f, w := openTokenFake(t)
	f.Commit("main", map[string]string{"a.yaml": "a"})
	w.Credentials.Shared = true
	client := connectTo(t, w.Provider, w.BaseURL, w.Project, w.Credentials)
	if got, err := client.FileAt(t.Context(), w.FileURL("main", "a.yaml")); err != nil || string(got) != "a" {
		t.Errorf("the event's own: %q, %v", got, err)
	}
	elsewhere := strings.Replace(w.FileURL("main", "a.yaml"), "/acme/app/", "/acme/other/", 1)
	if _, err := client.FileAt(t.Context(), elsewhere); !fault.Is(err, fault.Ignored) ||
		!strings.Contains(err.Error(), "global Repository") {
		t.Errorf("another repository: %v", err)
	}
}

// GitHub says with each answer when the token expires, and refuses it after that.
func TestExpiryOfTokenIsReported(t *testing.T) {
	t.Parallel()
	f, w := openTokenFake(t)
	f.Commit("main", map[string]string{"a.yaml": "a"})
	at := time.Now().Add(48 * time.Hour).UTC().Truncate(time.Second)
	f.ExpireToken(f.token, at)
	var told time.Time
	w.Credentials.Expires = func(at time.Time) { told = at }
	client := connectTo(t, w.Provider, w.BaseURL, w.Project, w.Credentials)
	if _, err := client.DefaultBranch(t.Context()); err != nil || !told.Equal(at) {
		t.Errorf("it says %s, %v, want %s", told, err, at)
	}
	f.ExpireToken(f.token, time.Now().Add(-time.Hour))
	calls := f.Calls()
	_, err := client.DefaultBranch(t.Context())
	if got := fault.Of(err); got == nil || got.Reason != fault.ReasonCredentialsRefused ||
		!strings.Contains(got.Message, "key provider.token of secret ci/app") || f.Calls() != calls+1 {
		t.Errorf("an expired token: %v after %d calls, want one that names its Secret", err, f.Calls()-calls)
	}
	for text, want := range map[string]int64{"2026-12-05 12:00:00 UTC": 1796472000, "2026-12-05 13:00:00 +0100": 1796472000,
		"": 0, "soon": 0} {
		got := expiryOf(map[string][]string{"Github-Authentication-Token-Expiration": {text}})
		if want == 0 && !got.IsZero() || want != 0 && got.Unix() != want {
			t.Errorf("%q is %s", text, got)
		}
	}
}

// A check of an App has buttons that start it again. No event of a token does anything with them.
func TestRerunIsOfAnApp(t *testing.T) {
	t.Parallel()
	_, w := openTokenFake(t)
	client := connectTo(t, w.Provider, w.BaseURL, w.Project, w.Credentials)
	event := &v1alpha1.GitEventSpec{Project: w.Project, Rerun: &v1alpha1.Rerun{AppID: 15368}}
	if _, err := client.Complete(t.Context(), event); !fault.Is(err, fault.Ignored) {
		t.Errorf("a re-run of another App's check: %v, want it ignored", err)
	}
}

func connectTo(
	t *testing.T, p provider.Provider, base string, project v1alpha1.Project, c provider.Credentials,
) provider.Client {
	t.Helper()
	client, err := p.Connect(t.Context(), base, project, c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func headOf(f *fake, project v1alpha1.Project) git.Head {
	return git.Head{SHA: f.Commit("main", map[string]string{"x": "y"}), Project: project}
}
