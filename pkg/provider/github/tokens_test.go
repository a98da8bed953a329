// SPDX-License-Identifier: Apache-2.0

package github

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/test/forge"
)

func at(text string) *metav1.Time {
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return &metav1.Time{Time: when}
}

func TestTokenReachesOneRepository(t *testing.T) {
	b := newBench(t)
	token, err := b.client.CloneToken(t.Context(), reading)
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(token.ExpiresAt); left < 59*time.Minute || left > time.Hour {
		t.Errorf("it says that it works for %v, want GitHub's hour", left)
	}
	for repo, want := range map[string]int{"acme/app": http.StatusOK, "acme/other": http.StatusNotFound} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.APIURL()+"repos/"+repo, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token.Value)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", repo, resp.StatusCode, want)
		}
	}
}

func TestTokensAreCachedUntilTheyExpire(t *testing.T) {
	f, w := openFake(t, forge.Options{})
	f.Grant("dev", "write")
	clock := clocktesting.NewFakeClock(time.Now())
	p := New(Options{Now: clock.Now})
	use := func(clone bool) {
		t.Helper()
		client, err := p.Connect(t.Context(), w.BaseURL, w.Project, w.Credentials)
		if err != nil {
			t.Fatal(err)
		}
		if clone {
			_, err = client.CloneToken(t.Context(), reading)
		} else {
			_, err = client.CanWrite(t.Context(), "dev")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	steps := []struct {
		name  string
		after time.Duration
		clone bool
		mints int
	}{
		{"the first call mints", 0, false, 1},
		{"another client of the same repository uses the same token", 0, false, 1},
		{"a run's pods get one of their own", 20 * time.Minute, true, 2},
		{"and another run's another", 0, true, 3},
		{"calls use theirs on", 15 * time.Minute, false, 3},
		{"shortly before its end a call mints anew", 24 * time.Minute, false, 4},
	}
	for _, s := range steps {
		clock.Step(s.after)
		use(s.clone)
		if got := f.Count(forge.RouteToken); got != s.mints {
			t.Fatalf("%s: %d mints, want %d", s.name, got, s.mints)
		}
	}
}

func TestConcurrentCallsShareOneMint(t *testing.T) {
	b := newBench(t)
	release := make(chan struct{})
	held := b.Inject(forge.Fault{Route: forge.RouteToken, Do: forge.Hold(release)})
	errs := make(chan error, 8)
	for range cap(errs) {
		go func() {
			_, err := b.client.CanWrite(t.Context(), "dev")
			errs <- err
		}()
	}
	if err := held.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	close(release)
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if got := b.Count(forge.RouteToken); got != 1 {
		t.Errorf("%d mints, want 1", got)
	}
}

func TestMintFailures(t *testing.T) {
	json := http.Header{"Content-Type": {"application/json"}}
	cases := []struct {
		name   string
		do     forge.Action
		class  fault.Class
		reason string
	}{
		{"null would make ghinstallation panic", forge.Answer(201, json, "null"), fault.Transient, "BadAnswer"},
		{"an answer without a token", forge.Answer(201, json, `{"expires_at":"2030-01-01T00:00:00Z"}`), fault.Transient,
			"BadAnswer"},
		{"a token of the wrong type", forge.Answer(201, json, `{"token":5,"expires_at":"2030-01-01T00:00:00Z"}`),
			fault.Transient, "BadAnswer"},
		{"the App was uninstalled", forge.NotFound404(), fault.Operator, "InstallationNotFound"},
		{"a wrong clock", forge.Answer(401, json,
			`{"message":"'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"}`),
			fault.Operator, "CredentialsRefused"},
		{"suspended", forge.Answer(403, json, `{"message":"This installation has been suspended"}`), fault.Operator,
			"PermissionMissing"},
		{"GitHub is down", forge.ServerError502HTML(), fault.Transient, "GitServiceUnavailable"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.Inject(forge.Fault{Route: forge.RouteToken, Do: c.do})
			_, tokenErr := b.client.CloneToken(t.Context(), reading)
			canWrite, callErr := b.client.CanWrite(t.Context(), "dev")
			if canWrite {
				t.Error("write access without a token")
			}
			for _, err := range []error{tokenErr, callErr} {
				if f := fault.Of(err); f == nil || f.Class != c.class || f.Reason != c.reason {
					t.Errorf("got %+v, want %s %s", f, c.class, c.reason)
				}
			}
		})
	}
}

func TestInstallationWithoutTheRepository(t *testing.T) {
	b := newBench(t)
	b.DeleteRepo(testRepo)
	_, err := b.client.Files(t.Context(), b.head.SHA, ".tekton")
	if f := fault.Of(err); f == nil || f.Class != fault.Operator || f.Reason != "RepositoryNotInstalled" {
		t.Errorf("got %+v, want Operator RepositoryNotInstalled", f)
	}
}

func TestBadPrivateKeyIsNotShown(t *testing.T) {
	_, w := openFake(t, forge.Options{})
	w.Credentials.PrivateKey = []byte("-----BEGIN RSA PRIVATE KEY-----\ns3cr3t\n-----END RSA PRIVATE KEY-----\n")
	client, err := w.Provider.Connect(t.Context(), w.BaseURL, w.Project, w.Credentials)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.CloneToken(t.Context(), reading)
	f := fault.Of(err)
	if f == nil || f.Class != fault.Operator || f.Reason != fault.ReasonCredentialsInvalid ||
		strings.Contains(f.Message, "s3cr3t") || !strings.Contains(f.Message, "secret plumbline/app") {
		t.Errorf("got %+v, want an Operator fault that names the Secret, without the key", f)
	}
}

func TestRevokedTokenIsMintedOnce(t *testing.T) {
	b := newBench(t)
	if _, err := b.client.CanWrite(t.Context(), "nobody"); err != nil {
		t.Fatal(err)
	}
	b.RevokeTokens()
	if _, err := b.client.CanWrite(t.Context(), "nobody"); err != nil {
		t.Errorf("after the token was revoked: %v", err)
	}
	b.Inject(forge.Fault{Route: forge.RoutePermission, Do: forge.Unauthorized401()})
	before := b.Count(forge.RoutePermission)
	_, err := b.client.CanWrite(t.Context(), "nobody")
	if f := fault.Of(err); f == nil || f.Class != fault.Operator || f.Reason != fault.ReasonCredentialsRefused {
		t.Errorf("got %+v", f)
	}
	if got := b.Count(forge.RoutePermission) - before; got != 2 {
		t.Errorf("called %d times, want 2", got)
	}
}

func TestConnectURLs(t *testing.T) {
	cases := []struct{ base, project, want string }{
		{"https://github.com", "https://github.com/acme/app", "https://api.github.com/"},
		{"https://GitHub.com/", "https://github.com:443/acme/app", "https://api.github.com/"},
		{"https://ghe.example:8443", "https://ghe.example:8443/acme/app", "https://ghe.example:8443/api/v3/"},
		{"http://127.0.0.1:80", "http://127.0.0.1/acme/app", "http://127.0.0.1:80/api/v3/"},
		{"http://ghe.example", "http://ghe.example/acme/app", ""},
		{"https://ghe.example", "https://github.com/acme/app", ""},
		{"https://github.com", "https://github.com.evil.example/acme/app", ""},
		{"https://user@github.com", "https://github.com/acme/app", ""},
		{"github.com", "https://github.com/acme/app", ""},
	}
	for _, c := range cases {
		project := git.Head{}.Project
		project.URL = c.project
		got, err := apiURL("github-url", c.base, project)
		if (c.want == "") != fault.Is(err, fault.Operator) || (err == nil && got.String() != c.want) {
			t.Errorf("%s with %s: %v, %v, want %q", c.base, c.project, got, err, c.want)
		}
	}
}
