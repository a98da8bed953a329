// SPDX-License-Identifier: Apache-2.0

package play

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// gateway is the forge as Pipelines-as-Code calls it, with the routes that only Pipelines-as-Code
// uses. It counts the calls about each repository. Pipelines-as-Code has no record of events, so
// the calls show when it has finished one.
type gateway struct {
	server *httptest.Server
	forge  string // its URL
	proxy  *httputil.ReverseProxy

	mu       sync.Mutex
	calls    map[string]int // by the repository's name without its owner
	comments map[int64]remark
}

// remark is a comment on a pull request.
type remark struct{ by, body string }

func newGateway(forge string) (*gateway, error) {
	to, err := url.Parse(forge)
	if err != nil {
		return nil, err
	}
	g := &gateway{
		forge: forge, proxy: httputil.NewSingleHostReverseProxy(to), calls: map[string]int{}, comments: map[int64]remark{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/graphql", g.graphQL)
	mux.HandleFunc("GET /api/v3/repos/{owner}/{repo}/git/commits/{sha}", g.commit)
	mux.HandleFunc("GET /api/v3/repos/{owner}/{repo}/issues/comments/{id}", g.comment)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if parts := strings.Split(r.URL.Path, "/"); len(parts) > 5 && parts[3] == "repos" {
			g.count(parts[5])
		}
		g.proxy.ServeHTTP(w, r)
	})
	g.server = httptest.NewServer(mux)
	return g, nil
}

func (g *gateway) count(repo string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls[repo]++
}

// called is how many calls were about a repository.
func (g *gateway) called(repo string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls[repo]
}

// remember records a comment.
func (g *gateway) remember(id int64, by, body string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.comments[id] = remark{by: by, body: body}
}

func (g *gateway) comment(w http.ResponseWriter, r *http.Request) {
	g.count(r.PathValue("repo"))
	id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
	g.mu.Lock()
	said, known := g.comments[id]
	g.mu.Unlock()
	if !known {
		http.Error(w, `{"message":"Not Found"}`, http.StatusNotFound)
		return
	}
	answer(w, map[string]any{"id": id, "body": said.body, "user": map[string]any{"login": said.by, "type": "User"}})
}

// commit answers GitHub's "get a commit object": what "get a commit" has under commit, and around
// it.
func (g *gateway) commit(w http.ResponseWriter, r *http.Request) {
	g.count(r.PathValue("repo"))
	code, body := g.ask(r, fmt.Sprintf("/repos/%s/%s/commits/%s", r.PathValue("owner"), r.PathValue("repo"),
		r.PathValue("sha")), "application/json")
	var full map[string]any
	if code != http.StatusOK || json.Unmarshal(body, &full) != nil {
		w.WriteHeader(code)
		_, _ = w.Write(body)
		return
	}
	object, _ := full["commit"].(map[string]any)
	if object == nil {
		object = map[string]any{}
	}
	for _, same := range []string{"sha", "html_url", "parents", "node_id"} {
		object[same] = full[same]
	}
	answer(w, object)
}

// blob is one part of a query: an alias and the expression "ref:path" of a file.
var blob = regexp.MustCompile(`(\w+):\s*object\(expression:\s*("(?:[^"\\]|\\.)*")\)`)

// graphQL answers queries for texts of files, the only ones that Pipelines-as-Code has.
func (g *gateway) graphQL(w http.ResponseWriter, r *http.Request) {
	var query struct {
		Query     string
		Variables struct{ Owner, Name string }
	}
	if err := json.NewDecoder(r.Body).Decode(&query); err != nil {
		http.Error(w, `{"message":"Problems parsing JSON"}`, http.StatusBadRequest)
		return
	}
	g.count(query.Variables.Name)
	found := map[string]any{}
	for _, part := range blob.FindAllStringSubmatch(query.Query, -1) {
		expression := ""
		if err := json.Unmarshal([]byte(part[2]), &expression); err != nil {
			http.Error(w, `{"message":"A query attribute must be specified and must be a string."}`, http.StatusBadRequest)
			return
		}
		ref, path, _ := strings.Cut(expression, ":")
		found[part[1]] = nil
		at := fmt.Sprintf("/repos/%s/%s/contents/%s?ref=%s", query.Variables.Owner, query.Variables.Name, path,
			url.QueryEscape(ref))
		if code, text := g.ask(r, at, "application/vnd.github.raw+json"); code == http.StatusOK {
			found[part[1]] = map[string]any{"text": string(text)}
		}
	}
	answer(w, map[string]any{"data": map[string]any{"repository": found}})
}

// ask asks the forge with the caller's token.
func (g *gateway) ask(r *http.Request, path, accept string) (int, []byte) {
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, g.forge+"/api/v3"+path, nil)
	if err != nil {
		return http.StatusBadRequest, nil
	}
	request.Header.Set("Authorization", r.Header.Get("Authorization"))
	request.Header.Set("Accept", accept)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return http.StatusBadGateway, nil
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return http.StatusBadGateway, nil
	}
	return response.StatusCode, body
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(body) // a client that is gone has nothing to be told
}
