// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"
)

const testApp = 7

// world is a started forge with one App, one private repository and a commit.
type world struct {
	*GitHub
	t    *testing.T
	app  App
	inst int64
	repo Repo
	sha  string
}

func newWorld(t *testing.T, o Options) *world {
	t.Helper()
	g := New(o)
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	w := &world{GitHub: g, t: t}
	w.app = g.CreateApp(testApp, "plumbline", testKey(t), "hush")
	w.repo = g.CreateRepo("org", "app", RepoOptions{Private: true})
	w.sha = g.Commit("org/app", "main", Change{Message: "first", Author: "alice", Files: map[string]string{
		".tekton/push.yaml": "kind: PipelineRun\n", "README.md": "hello\n",
	}})
	w.inst = g.Install(testApp, "org", "app")
	return w
}

// reply is an answer as the hand-written client sees it.
type reply struct {
	status int
	header http.Header
	body   []byte
	err    error
}

func (r reply) object(t *testing.T) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal(r.body, &o); err != nil {
		t.Fatalf("answer %d is no object: %v: %s", r.status, err, r.body)
	}
	return o
}

func (r reply) list(t *testing.T) []map[string]any {
	t.Helper()
	var l []map[string]any
	if err := json.Unmarshal(r.body, &l); err != nil {
		t.Fatalf("answer %d is no list: %v: %s", r.status, err, r.body)
	}
	return l
}

func (r reply) message() string {
	var o struct{ Message string }
	_ = json.Unmarshal(r.body, &o)
	return o.Message
}

// do makes a call; auth is a whole Authorization header, body anything JSON.
func (w *world) do(method, path, auth string, body any) reply {
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
	defer cancel()
	return doCtx(ctx, method, w.URL()+path, auth, body)
}

func doCtx(ctx context.Context, method, url, auth string, body any) reply {
	var rd io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return reply{err: err}
		}
		rd = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, rd)
	if err != nil {
		return reply{err: err}
	}
	if auth != "" {
		req.Header.Set("Authorization", auth)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return reply{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return reply{status: resp.StatusCode, header: resp.Header, body: b, err: err}
}

// token mints an installation token and returns it as an Authorization header.
func (w *world) token(inst int64, body any) string {
	w.t.Helper()
	r := w.do("POST", "/api/v3/app/installations/"+itoa(inst)+"/access_tokens", w.jwt(), body)
	if r.status != 201 {
		w.t.Fatalf("minting a token: %d %s", r.status, r.body)
	}
	return "token " + text(r.object(w.t), "token")
}

func (w *world) jwt() string {
	now := time.Now()
	return "Bearer " + signJWT(w.t, w.app.PrivateKeyPEM, map[string]any{
		"iss": itoa(w.app.ID), "iat": now.Add(-30 * time.Second).Unix(), "exp": now.Add(2 * time.Minute).Unix(),
	})
}

func signJWT(t *testing.T, pemKey string, claims map[string]any) string {
	t.Helper()
	enc := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	input := enc(map[string]any{"alg": "RS256", "typ": "JWT"}) + "." + enc(claims)
	sum := sha256.Sum256([]byte(input))
	sig, err := rsa.SignPKCS1v15(rand.Reader, parseKey(pemKey), crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return input + "." + base64.RawURLEncoding.EncodeToString(sig)
}

// testKey generates a key through the forge itself, so that every test has its own.
func testKey(t *testing.T) string {
	t.Helper()
	return New(Options{}).CreateApp(1, "keys", "", "").PrivateKeyPEM
}
