// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/asking"
)

const api = "/api/v4"

// fixture is a started forge with one private project, a commit, a hook and the
// token of a bot with the level Developer.
type fixture struct {
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

func newFixture(t *testing.T, o Options) *fixture {
	t.Helper()
	g := New(o)
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	w := &fixture{GitLab: g, t: t}
	w.project = g.CreateProject(app, ProjectOptions{Unprotected: true})
	w.sha = g.Commit(app, "main", Change{Message: "first\n\nwith a body\n", Author: "alice", Files: map[string]string{
		".tekton/push.yaml": "kind: PipelineRun\n", "README.md": "hello\n", "docs/a b.md": "a\n",
	}})
	w.hook = g.AddHook(app, "http://127.0.0.1:1", "hush")
	tok := g.CreateToken(NewToken{Project: app})
	w.token, w.bot = tok.Value, tok.User
	return w
}

// reply is an answer as the tests see it.
type reply struct{ asking.Reply }

// said is the message of a refusal, or its error.
func (r reply) said() string {
	var o struct {
		Message any
		Error   string
	}
	_ = json.Unmarshal(r.Body, &o)
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
func (w *fixture) get(path string) reply { return w.do("GET", at+path, w.token, nil) }

// do makes a call with a PRIVATE-TOKEN; body is anything JSON.
func (w *fixture) do(method, path, token string, body any) reply {
	header := http.Header{}
	if token != "" {
		header.Set("PRIVATE-TOKEN", token)
	}
	return w.doWith(method, path, header, body)
}

func (w *fixture) doWith(method, path string, header http.Header, body any) reply {
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
	defer cancel()
	return reply{asking.Ask(ctx, method, w.URL()+path, header, body)}
}

func text(m map[string]any, name string) string {
	s, _ := m[name].(string)
	return s
}

// post posts a commit status on the world's commit.
func (w *fixture) post(fields map[string]any) reply {
	return w.do("POST", at+"/statuses/"+w.sha, w.token, fields)
}
