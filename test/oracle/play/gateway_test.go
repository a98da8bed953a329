// SPDX-License-Identifier: Apache-2.0

package play

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/test/forge"
)

// opened is a gateway to a forge with one commit in acme/app, and a token for it.
func opened(t *testing.T) (g *gateway, sha, token string) {
	t.Helper()
	hub := forge.New(forge.Options{})
	if err := hub.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hub.Close() })
	app := hub.CreateApp(7, "app", "", "secret")
	hub.CreateRepo("acme", "app", forge.RepoOptions{Private: true})
	sha = hub.Commit("acme/app", "main", forge.Change{Files: map[string]string{`.tekton/a "b".yaml`: "a: b\n"}, Message: "begin"})
	g, err := newGateway(hub.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.server.Close)
	return g, sha, hub.Mint(hub.Install(app.ID, "acme"))
}

func (g *gateway) answers(t *testing.T, method, path, token, body string) (int, map[string]any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, g.server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "token "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer map[string]any
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("%s %s answers %q: %v", method, path, text, err)
	}
	return response.StatusCode, answer
}

// A query has the texts of files; null for one that is not there, and for all of them without a token that may read.
func TestTheGatewayAnswersQueriesForFiles(t *testing.T) {
	g, sha, token := opened(t)
	query, err := json.Marshal(map[string]any{
		"query": "query($owner: String!, $name: String!) {\n repository(owner: $owner, name: $name) {\n file0: object(expression: \"" + sha + `:.tekton/a \"b\".yaml") { ... on Blob { text } }
		  file1: object(expression: "` + sha + `:none.yaml") { ... on Blob { text } } } }`,
		"variables": map[string]string{"owner": "acme", "name": "app"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]string{
		token:  `{"repository":{"file0":{"text":"a: b\n"},"file1":null}}`,
		"none": `{"repository":{"file0":null,"file1":null}}`,
	} {
		_, answer := g.answers(t, http.MethodPost, "/api/graphql", token, string(query))
		if got, _ := json.Marshal(answer["data"]); string(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestTheGatewayAnswersCommitObjectsAndComments(t *testing.T) {
	g, sha, token := opened(t)
	g.remember(5, "will", "/ok-to-test")
	if code, answer := g.answers(t, http.MethodGet, "/api/v3/repos/acme/app/git/commits/"+sha, token, ""); code != 200 || answer["sha"] != sha || answer["message"] != "begin" {
		t.Errorf("commit: %d %v", code, answer)
	}
	if code, answer := g.answers(t, http.MethodGet, "/api/v3/repos/acme/app/git/commits/"+strings.Repeat("0", 40), token, ""); code != 422 {
		t.Errorf("no commit: %d %v", code, answer)
	}
	if _, answer := g.answers(t, http.MethodGet, "/api/v3/repos/acme/app/issues/comments/5", token, ""); answer["body"] != "/ok-to-test" {
		t.Errorf("comment: %v", answer)
	}
	if code, _ := g.answers(t, http.MethodGet, "/api/v3/repos/acme/app", token, ""); code != 200 {
		t.Errorf("what it does not know is not asked of the forge: %d", code)
	}
	if got := g.called("app"); got != 4 {
		t.Errorf("%d calls counted, want 4", got)
	}
}
