// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v4"

	"github.com/plumbline-ci/plumbline/test/forge/internal/asking"
)

const testApp = 7

// fixture is a started forge with one App, one private repository and a commit.
type fixture struct {
	*GitHub
	t    *testing.T
	app  App
	inst int64
	repo Repo
	sha  string
}

func newFixture(t *testing.T, o Options) *fixture {
	t.Helper()
	g := New(o)
	must(t, g.Start())
	t.Cleanup(func() { _ = g.Close() })
	w := &fixture{GitHub: g, t: t}
	w.app = g.CreateApp(testApp, "plumbline", testKey(t), "hush")
	w.repo = g.CreateRepo("org", "app", RepoOptions{Private: true})
	w.sha = g.Commit("org/app", "main", Change{Message: "first", Author: "alice", Files: map[string]string{
		".tekton/push.yaml": "kind: PipelineRun\n", "README.md": "hello\n",
	}})
	w.inst = g.Install(testApp, "org", "app")
	return w
}

// reply is an answer as the tests see it.
type reply struct{ asking.Reply }

func (r reply) message() string {
	var o struct{ Message string }
	_ = json.Unmarshal(r.Body, &o)
	return o.Message
}

// do makes a call; auth is a whole Authorization header, body anything JSON.
func (w *fixture) do(method, path, auth string, body any) reply {
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
	defer cancel()
	return doCtx(ctx, method, w.URL()+path, auth, body)
}

func doCtx(ctx context.Context, method, url, auth string, body any) reply {
	header := http.Header{}
	if auth != "" {
		header.Set("Authorization", auth)
	}
	return reply{asking.Ask(ctx, method, url, header, body)}
}

// token mints an installation token and returns it as an Authorization header.
func (w *fixture) token(inst int64, body any) string {
	w.t.Helper()
	r := w.do("POST", "/api/v3/app/installations/"+itoa(inst)+"/access_tokens", w.jwt(), body)
	if r.Status != 201 {
		w.t.Fatalf("minting a token: %d %s", r.Status, r.Body)
	}
	return "token " + text(r.Object(w.t), "token")
}

func (w *fixture) jwt() string {
	now := time.Now()
	return "Bearer " + signJWT(w.t, w.app.PrivateKeyPEM, map[string]any{
		"iss": itoa(w.app.ID), "iat": now.Add(-30 * time.Second).Unix(), "exp": now.Add(2 * time.Minute).Unix(),
	})
}

func signJWT(t *testing.T, pemKey string, claims jwt.MapClaims) string {
	t.Helper()
	signed, err := jwt.NewWithClaims(jwt.SigningMethodRS256, claims).SignedString(parseKey(pemKey))
	must(t, err)
	return signed
}

// testKey generates a key through the forge itself, so that every test has its own.
func testKey(t *testing.T) string {
	t.Helper()
	return New(Options{}).CreateApp(1, "keys", "", "").PrivateKeyPEM
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
