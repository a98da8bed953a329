// SPDX-License-Identifier: Apache-2.0

package github

import (
	"net/http"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// reading is what a run's token may do unless its Repository requests more.
var reading = map[string]string{"contents": "read", "metadata": "read"}

// asRun calls the API with a run's token.
func (b bench) asRun(t *testing.T, method, path, token, body string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, b.APIURL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// S28: a run's token reads its repository. It writes no check, which would be a verdict on any
// commit, and no comment. After it is revoked it no longer works, while the other run's and the
// controller's do.
func TestRunTokenIsSeparateAndReadOnly(t *testing.T) {
	b := newBench(t)
	if _, err := b.client.CanWrite(t.Context(), "dev"); err != nil { // the controller has a token that may write
		t.Fatal(err)
	}
	token, err := b.client.CloneToken(t.Context(), reading)
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.client.CloneToken(t.Context(), reading)
	if err != nil {
		t.Fatal(err)
	}
	check := `{"name":"ci / build","head_sha":"` + b.head.SHA + `","status":"completed","conclusion":"success"}`
	contents := "repos/" + testRepo + "/git/trees/" + b.head.SHA
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{http.MethodPost, "repos/" + testRepo + "/check-runs", check, http.StatusForbidden},
		{http.MethodPost, "repos/" + testRepo + "/issues/1/comments", `{"body":"x"}`, http.StatusForbidden},
		{http.MethodGet, "repos/" + testRepo + "/pulls", "", http.StatusForbidden},
		{http.MethodGet, "repos/acme/other/contents/README.md", "", http.StatusNotFound},
		{http.MethodGet, contents, "", http.StatusOK},
	} {
		if got := b.asRun(t, c.method, c.path, token.Value, c.body); got != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, got, c.want)
		}
	}
	if err := b.client.RevokeToken(t.Context(), token.Value); err != nil {
		t.Fatal(err)
	}
	if got := b.asRun(t, http.MethodGet, contents, token.Value, ""); got != http.StatusUnauthorized {
		t.Errorf("the revoked token: %d, want 401", got)
	}
	if got := b.asRun(t, http.MethodGet, contents, second.Value, ""); got != http.StatusOK {
		t.Errorf("the other run's token: %d, want 200", got)
	}
	mints := b.Count(forge.RouteToken)
	if _, err := b.client.CanWrite(t.Context(), "dev"); err != nil || b.Count(forge.RouteToken) != mints {
		t.Errorf("the controller: %v, %d new mints", err, b.Count(forge.RouteToken)-mints)
	}
}

func TestRunTokenHasRequestedPermissions(t *testing.T) {
	b := newBench(t)
	wanted := map[string]string{"contents": "read", "metadata": "read", "pull_requests": "write"}
	token, err := b.client.CloneToken(t.Context(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.asRun(t, http.MethodGet, "repos/"+testRepo+"/pulls", token.Value, ""); got != http.StatusOK {
		t.Errorf("pull requests: %d, want 200", got)
	}
	for name, says := range map[string]string{"packages": "not granted", "no_such_permission": "no_such_permission"} {
		_, err := b.client.CloneToken(t.Context(), map[string]string{"contents": "read", name: "write"})
		if f := fault.Of(err); f == nil || f.Class != fault.Operator || f.Reason != fault.ReasonPermissionMissing ||
			!strings.Contains(f.Message, says) {
			t.Errorf("%s: %+v, want Operator PermissionMissing that says %q", name, f, says)
		}
	}
}

// An event may have hundreds of runs: when GitHub limits mints, the other runs do not try one by
// one.
func TestLimitedMintStopsOtherRuns(t *testing.T) {
	f, w := openFake(t, forge.Options{})
	clock := clocktesting.NewFakeClock(time.Now())
	client, err := New(Options{Now: clock.Now}).Connect(t.Context(), w.BaseURL, w.Project, w.Credentials)
	if err != nil {
		t.Fatal(err)
	}
	f.Inject(forge.Fault{Route: forge.RouteToken, Count: 1, Do: forge.SecondaryRateLimit(30)})
	var said []string
	for range 5 {
		_, err := client.CloneToken(t.Context(), reading)
		limited := fault.Of(err)
		if limited == nil || limited.Class != fault.Throttled || limited.RetryAfter <= 0 {
			t.Fatalf("%+v, want a Throttled fault with a time", limited)
		}
		said = append(said, limited.Reason+limited.Message)
	}
	if n := f.Count(forge.RouteToken); n != 1 || said[0] != said[4] {
		t.Errorf("%d calls, which said %q", n, said)
	}
	clock.Step(31 * time.Second)
	if _, err := client.CloneToken(t.Context(), reading); err != nil {
		t.Errorf("after the limit: %v", err)
	}
}

func TestRevokeTokenReturnsFault(t *testing.T) {
	for name, do := range map[string]forge.Action{
		"GitHub is down": forge.ServerError502HTML(), "another answer": forge.Answer(http.StatusOK, nil, "<html>"),
		"a redirect": forge.Answer(http.StatusFound, http.Header{"Location": {"https://evil.example"}}, ""),
		"no answer":  forge.Drop(), "a limit": forge.SecondaryRateLimit(30),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			token, err := b.client.CloneToken(t.Context(), reading)
			if err != nil {
				t.Fatal(err)
			}
			b.Inject(forge.Fault{Route: forge.RouteRevoke, Count: 1, Do: do})
			err = b.client.RevokeToken(t.Context(), token.Value)
			if err == nil || strings.Contains(err.Error(), token.Value) || fault.Is(err, fault.Operator) {
				t.Errorf("got %v, want a wait that does not tell the token", err)
			}
			if err := b.client.RevokeToken(t.Context(), token.Value); err != nil {
				t.Errorf("again: %v", err)
			}
		})
	}
}
