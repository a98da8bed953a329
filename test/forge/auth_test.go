// SPDX-License-Identifier: Apache-2.0

package forge

import (
	stdcmp "cmp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAppJWT(t *testing.T) {
	w := newFixture(t, Options{})
	now := time.Now()
	claims := func(change map[string]any) map[string]any {
		c := map[string]any{"iss": "7", "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix()}
		for k, v := range change {
			c[k] = v
		}
		return c
	}
	const (
		undecodable = "A JSON web token could not be decoded"
		badIat      = "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"
		badExp      = "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires"
		farExp      = "'Expiration time' claim ('exp') is too far in the future"
	)
	for name, tc := range map[string]struct {
		claims  map[string]any
		key     string
		scheme  string
		status  int
		message string
	}{
		"a good token names its App": {claims: claims(nil), status: 200},
		"the issuer may be a number": {claims: claims(map[string]any{"iss": 7}), status: 200},
		"a clock half a minute ahead is tolerated": {
			claims: claims(map[string]any{"iat": now.Add(30 * time.Second).Unix()}), status: 200,
		},
		"a clock two minutes ahead is not": {
			claims: claims(map[string]any{"iat": now.Add(2 * time.Minute).Unix()}), status: 401, message: badIat,
		},
		"an expired token is refused": {
			claims: claims(map[string]any{"exp": now.Add(-time.Second).Unix()}), status: 401, message: badExp,
		},
		"a token without exp is refused": {
			claims: claims(map[string]any{"exp": nil}), status: 401, message: badExp,
		},
		"a token for longer than 10 minutes is not": {
			claims: claims(map[string]any{"exp": now.Add(11 * time.Minute).Unix()}), status: 401, message: farExp,
		},
		"a token of another key cannot be decoded": {
			claims: claims(nil), key: testKey(t), status: 401, message: undecodable,
		},
		"an unknown App is not found": {
			claims: claims(map[string]any{"iss": "8"}), status: 404, message: "Integration not found",
		},
		"a JWT needs Bearer, the word token won't do": {
			claims: claims(nil), scheme: "token", status: 401, message: undecodable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			auth := stdcmp.Or(tc.scheme, "Bearer") + " " + signJWT(t, stdcmp.Or(tc.key, w.app.PrivateKeyPEM), tc.claims)
			r := w.do("GET", "/api/v3/app", auth, nil)
			if r.Status != tc.status || r.message() != tc.message {
				t.Errorf("got %d %q, want %d %q", r.Status, r.message(), tc.status, tc.message)
			}
		})
	}
}

func TestTokenScope(t *testing.T) {
	w := newFixture(t, Options{})
	other := w.CreateRepo("org", "other", RepoOptions{Private: true})
	w.CreateRepo("org", "open", RepoOptions{})
	w.Commit("org/open", "main", Change{Files: map[string]string{"a": "b"}})
	foreign := w.CreateRepo("elsewhere", "app", RepoOptions{Private: true})
	mint := func(body any) reply {
		return w.do("POST", "/app/installations/"+itoa(w.inst)+"/access_tokens", w.jwt(), body)
	}
	for name, body := range map[string]any{
		"a repository the installation lacks": map[string]any{"repository_ids": []int64{other.ID}},
		"the name of a repository it lacks":   map[string]any{"repositories": []string{"other"}},
		"a repository of another account":     map[string]any{"repository_ids": []int64{foreign.ID}},
		"a repository that does not exist":    map[string]any{"repositories": []string{"nope"}},
		"a permission that was not granted":   map[string]any{"permissions": map[string]string{"administration": "read"}},
		"a higher level than was granted":     map[string]any{"permissions": map[string]string{"contents": "write"}},
	} {
		if r := mint(body); r.Status != 422 {
			t.Errorf("a token for %s: got %d %s, want 422", name, r.Status, r.Body)
		}
	}
	w.SetInstalledRepos(w.inst, "org/app", "org/other")
	tok := w.token(w.inst, map[string]any{"repository_ids": []int64{w.repo.ID}})
	narrow := w.token(w.inst, map[string]any{
		"repositories": []string{"app"}, "permissions": map[string]string{"contents": "read"},
	})
	check := map[string]any{"name": "n", "head_sha": w.sha}
	for name, tc := range map[string]struct {
		method, path, auth string
		body               any
		status             int
	}{
		"the token reads its repository":                    {"GET", "/repos/org/app", tok, nil, 200},
		"names ignore case":                                 {"GET", "/repos/ORG/App", tok, nil, 200},
		"a private repository outside the token is hidden":  {"GET", "/repos/org/other", tok, nil, 404},
		"a check run there is hidden as well":               {"POST", "/repos/org/other/check-runs", tok, check, 404},
		"a public repository outside the token can be read": {"GET", "/repos/org/open/contents/a", tok, nil, 200},
		"but not written":                                   {"POST", "/repos/org/open/check-runs", tok, check, 403},
		"nobody reads a private repository":                 {"GET", "/repos/org/app", "", nil, 404},
		"nobody reads a public one":                         {"GET", "/repos/org/open", "", nil, 200},
		"nobody writes a check run":                         {"POST", "/repos/org/open/check-runs", "", check, 401},
		"an unknown token is refused":                       {"GET", "/repos/org/open", "token ghs_no", nil, 401},
		"a JWT is no installation token":                    {"GET", "/repos/org/app", w.jwt(), nil, 401},
		"an installation token is no JWT":                   {"GET", "/app", "Bearer " + tok[6:], nil, 401},
		"a narrowed token reads contents":                   {"GET", "/repos/org/app/contents/README.md", narrow, nil, 200},
		"a narrowed token writes no check run":              {"POST", "/repos/org/app/check-runs", narrow, check, 403},
	} {
		if r := w.do(tc.method, tc.path, tc.auth, tc.body); r.Status != tc.status {
			t.Errorf("%s: got %d %s, want %d", name, r.Status, r.Body, tc.status)
		}
	}
	r := w.do("POST", "/repos/org/app/check-runs", narrow, check)
	if got := r.Header.Get("X-Accepted-GitHub-Permissions"); got != "checks=write" ||
		r.message() != "Resource not accessible by integration" {
		t.Errorf("the refusal names %q and says %q", got, r.message())
	}
}

func TestTokenExpiry(t *testing.T) {
	var ahead atomic.Int64
	w := newFixture(t, Options{
		TokenLife: time.Minute,
		Now:       func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
	})
	tok := w.token(w.inst, nil)
	get := func() int { return w.do("GET", "/repos/org/app", tok, nil).Status }
	if got := get(); got != 200 {
		t.Fatalf("a fresh token: %d", got)
	}
	ahead.Store(int64(61 * time.Second))
	if got := get(); got != 401 {
		t.Errorf("an expired token: got %d, want 401", got)
	}
	ahead.Store(0)
	w.Suspend(w.inst, true)
	if got := get(); got != 403 {
		t.Errorf("a suspended installation: got %d, want 403", got)
	}
	w.Suspend(w.inst, false)
	w.Uninstall(w.inst)
	if got := get(); got != 401 {
		t.Errorf("an uninstalled App: got %d, want 401", got)
	}
}

func TestRateLimitIsCountedAndEnforced(t *testing.T) {
	w := newFixture(t, Options{RateLimit: 2})
	tok := w.token(w.inst, nil)
	var got []string
	for range 3 {
		r := w.do("GET", "/repos/org/app", tok, nil)
		got = append(got, itoa(int64(r.Status))+" "+r.Header.Get("X-RateLimit-Remaining"))
	}
	if diff := cmp.Diff([]string{"200 1", "200 0", "403 0"}, got); diff != "" {
		t.Errorf("status and remaining calls (-want +got):\n%s", diff)
	}
}
