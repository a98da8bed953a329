// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"
)

const api = "/api/v4"

// world is a started forge with one private project, a commit, a hook and the
// token of a bot with the level Developer.
type world struct {
	*GitLab
	t       *testing.T
	project Project
	sha     string
	hook    int64
	token   string
	bot     User
}

// app is the path of the world's project; its routes start with at.
const (
	app = "org/team/app"
	at  = api + "/projects/org%2Fteam%2Fapp"
)

func newWorld(t *testing.T, o Options) *world {
	t.Helper()
	g := New(o)
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	w := &world{GitLab: g, t: t}
	w.project = g.CreateProject(app, ProjectOptions{Unprotected: true})
	w.sha = g.Commit(app, "main", Change{Message: "first\n\nwith a body\n", Author: "alice", Files: map[string]string{
		".tekton/push.yaml": "kind: PipelineRun\n", "README.md": "hello\n", "docs/a b.md": "a\n",
	}})
	w.hook = g.AddHook(app, "http://127.0.0.1:1", "hush")
	tok := g.CreateToken(NewToken{Project: app})
	w.token, w.bot = tok.Value, tok.User
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

// said is the message of a refusal, or its error.
func (r reply) said() string {
	var o struct {
		Message any
		Error   string
	}
	_ = json.Unmarshal(r.body, &o)
	if s, isText := o.Message.(string); isText {
		return s
	}
	if o.Message != nil {
		b, _ := json.Marshal(o.Message)
		return string(b)
	}
	return o.Error
}

// get reads a path below the world's project with its token.
func (w *world) get(path string) reply { return w.do("GET", at+path, w.token, nil) }

// do makes a call with a PRIVATE-TOKEN; body is anything JSON.
func (w *world) do(method, path, token string, body any) reply {
	header := http.Header{}
	if token != "" {
		header.Set("PRIVATE-TOKEN", token)
	}
	return w.doWith(method, path, header, body)
}

func (w *world) doWith(method, path string, header http.Header, body any) reply {
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
	defer cancel()
	var rd io.Reader
	if form, isForm := body.(url.Values); isForm {
		rd = bytes.NewReader([]byte(form.Encode()))
		header.Set("Content-Type", "application/x-www-form-urlencoded")
	} else if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return reply{err: err}
		}
		rd = bytes.NewReader(b)
		header.Set("Content-Type", "application/json")
	}
	req, err := http.NewRequestWithContext(ctx, method, w.URL()+path, rd)
	if err != nil {
		return reply{err: err}
	}
	req.Header = header
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return reply{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return reply{status: resp.StatusCode, header: resp.Header, body: b, err: err}
}

func text(m map[string]any, name string) string {
	s, _ := m[name].(string)
	return s
}

// post posts a commit status on the world's commit.
func (w *world) post(fields map[string]any) reply {
	return w.do("POST", at+"/statuses/"+w.sha, w.token, fields)
}
