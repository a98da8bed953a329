// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func paths(list []map[string]any) string {
	var out []string
	for _, e := range list {
		out = append(out, text(e, "path"))
	}
	return strings.Join(out, ", ")
}

func TestTree(t *testing.T) {
	w := newFixture(t, Options{})
	w.Commit(app, "feature/x", Change{Files: map[string]string{".tekton/sub/deep.yaml": "d"}})
	for query, want := range map[string]string{
		"":                              "200 .tekton, docs, README.md",
		"?path=.tekton":                 "200 .tekton/push.yaml",
		"?recursive=true":               "200 .tekton, docs, .tekton/push.yaml, README.md, docs/a b.md",
		"?ref=feature%2Fx&path=.tekton": "200 .tekton/sub, .tekton/push.yaml",
		"?ref=feature%2Fx&path=.tekton&recursive=true": "200 .tekton/sub, .tekton/push.yaml, .tekton/sub/deep.yaml",
		"?ref=nobody":        "404 404 Tree Not Found",
		"?path=none":         "404 404 invalid revision or path Not Found",
		"?path=README.md":    "404 404 invalid revision or path Not Found",
		"?per_page=x":        "400 per_page is invalid",
		"?per_page=2&page=2": "200 README.md",
		"?pagination=none":   `400 pagination cannot be "none" unless "recursive" is true`,
		"?pagination=none&recursive=1&per_page=1": "200 .tekton, docs, .tekton/push.yaml, README.md, docs/a b.md",
	} {
		r := w.get("/repository/tree" + query)
		got := fmt.Sprint(r.Status, " ", r.said())
		if r.Status == 200 {
			got = "200 " + paths(r.List(t))
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", query, got, want)
		}
	}
	w.CreateProject("org/empty", ProjectOptions{})
	tok := w.CreateToken(NewToken{Group: "org"}).Value
	if r := w.do("GET", api+"/projects/org%2Fempty/repository/tree", tok, nil); r.said() != "404 Tree Not Found" {
		t.Errorf("an empty project: %d %s", r.Status, r.said())
	}
}

func TestTreePages(t *testing.T) {
	w := newFixture(t, Options{})
	link := regexp.MustCompile(`<([^>]*)>; rel="next"`)
	next, pages := w.URL()+at+"/repository/tree?recursive=true&pagination=keyset&per_page=2", []string{}
	for next != "" {
		r := w.do("GET", strings.TrimPrefix(next, w.URL()), w.token, nil)
		pages = append(pages, paths(r.List(t)))
		next = ""
		if m := link.FindStringSubmatch(r.Header.Get("Link")); m != nil {
			next = m[1]
		}
		if r.Header.Get("X-Total") != "" {
			t.Error("keyset pages have no totals")
		}
	}
	want := []string{".tekton, docs", ".tekton/push.yaml, README.md", "docs/a b.md"}
	if diff := cmp.Diff(want, pages); diff != "" {
		t.Errorf("by key (-want +got):\n%s", diff)
	}
	// A full last page still links to a next one, which is empty.
	full := w.get("/repository/tree?pagination=keyset&per_page=3")
	if m := link.FindStringSubmatch(full.Header.Get("Link")); m == nil {
		t.Error("a full page has no next link")
	} else if r := w.do("GET", strings.TrimPrefix(m[1], w.URL()), w.token, nil); len(r.List(t)) != 0 ||
		r.Header.Get("Link") != "" {
		t.Errorf("the page after it: %s, Link %q", r.Body, r.Header.Get("Link"))
	}
	// A first numbered page promises a second one whether there is one or not.
	one, two := w.get("/repository/tree"), w.get("/repository/tree?page=2")
	if one.Header.Get("X-Next-Page") != "2" || two.Header.Get("X-Next-Page") != "" || len(two.List(t)) != 0 {
		t.Errorf("by number: next %q and %q, %s", one.Header.Get("X-Next-Page"), two.Header.Get("X-Next-Page"), two.Body)
	}
}

func TestFiles(t *testing.T) {
	w := newFixture(t, Options{})
	later := w.Commit(app, "main", Change{Files: map[string]string{"other": "o"}})
	r := w.get("/repository/files/docs%2Fa%20b%2Emd?ref=main")
	f := r.Object(t)
	content, err := base64.StdEncoding.DecodeString(text(f, "content"))
	if err != nil || string(content) != "a\n" || text(f, "commit_id") != later || text(f, "last_commit_id") != w.sha ||
		text(f, "file_name") != "a b.md" || f["size"] != 2.0 || r.Header.Get("X-Gitlab-Commit-Id") != later {
		t.Errorf("a file: %v %v", f, err)
	}
	if r := w.do("HEAD", at+"/repository/files/README.md?ref=main", w.token, nil); r.Status != 200 ||
		r.Header.Get("X-Gitlab-Size") != "6" || len(r.Body) > 0 {
		t.Errorf("metadata only: %d %v", r.Status, r.Header)
	}
	for path, want := range map[string]string{
		"/repository/files/none?ref=main":         "404 404 File Not Found",
		"/repository/files/docs?ref=main":         "404 404 File Not Found",
		"/repository/files/README.md?ref=nobody":  "404 404 Commit Not Found",
		"/repository/files/README.md":             "400 ref is missing, ref is empty",
		"/repository/files/..%2Fx?ref=main":       "400 file_path should be a valid file path",
		"/repository/files/docs/a.md":             "404 404 Not Found",
		"/repository/commits/nobody":              "404 404 Commit Not Found",
		"/repository/branches/nobody":             "404 404 Branch Not Found",
		"/repository/compare?from=main&to=nobody": "404 404 Ref Not Found",
		"/repository/compare?from=main":           "400 to is missing",
		"/merge_requests/1":                       "404 404 Not found",
		"/merge_requests/1/notes":                 "404 404 MergeRequest Not Found",
		"/nothing":                                "404 404 Not Found",
	} {
		if r := w.get(path); fmt.Sprint(r.Status, " ", r.said()) != want {
			t.Errorf("%s: got %d %s, want %s", path, r.Status, r.said(), want)
		}
	}
}

func TestLongListsAreNotCounted(t *testing.T) {
	w := newFixture(t, Options{CountLimit: 2})
	for i := range 3 {
		w.post(map[string]any{"state": "running", "name": fmt.Sprint(i)})
	}
	headers := func(query string) string {
		h := w.get("/repository/commits/" + w.sha + "/statuses" + query).Header
		return fmt.Sprintf("total=%s pages=%s page=%s next=%s prev=%s last=%v", h.Get("X-Total"), h.Get("X-Total-Pages"),
			h.Get("X-Page"),
			h.Get("X-Next-Page"), h.Get("X-Prev-Page"), strings.Contains(h.Get("Link"), `rel="last"`))
	}
	for query, want := range map[string]string{
		"?name=1":                   "total=1 pages=1 page=1 next= prev= last=true",
		"?per_page=2":               "total= pages= page=1 next=2 prev= last=false",
		"?per_page=2&page=2":        "total= pages= page=2 next= prev=1 last=false",
		"?per_page=1000":            "total= pages= page=1 next= prev= last=false",
		"?per_page=1&page=2&name=0": "total=1 pages=1 page=2 next= prev=1 last=true",
	} {
		if got := headers(query); got != want {
			t.Errorf("%q: got %s, want %s", query, got, want)
		}
	}
}
