// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// files shows a list of diffs: +added, -deleted, >renamed, changed.
func files(list []any) string {
	var out []string
	for _, v := range list {
		d := v.(map[string]any)
		switch {
		case d["new_file"] == true:
			out = append(out, "+"+text(d, "new_path"))
		case d["deleted_file"] == true:
			out = append(out, "-"+text(d, "old_path"))
		case d["renamed_file"] == true:
			out = append(out, text(d, "old_path")+">"+text(d, "new_path"))
		default:
			out = append(out, text(d, "new_path"))
		}
	}
	return strings.Join(out, " ")
}

func anys(list []map[string]any) []any {
	var out []any
	for _, o := range list {
		out = append(out, o)
	}
	return out
}

func TestCommit(t *testing.T) {
	w := newFixture(t, Options{})
	second := w.Commit(app, "feature/x", Change{Author: "bob", Files: map[string]string{
		"new": "n\n", "README.md": Deleted, "moved.md": "a\n", "docs/a b.md": Deleted, ".tekton/push.yaml": "kind: Task\n"}})
	w.CreateTag(app, "v1", w.sha, "bob")
	c := w.get("/repository/commits/feature%2Fx").Object(t)
	if text(c, "id") != second || text(c, "author_name") != "bob" || fmt.Sprint(c["parent_ids"]) != "["+w.sha+"]" ||
		c["last_pipeline"] != nil {
		t.Errorf("a commit: %v", c)
	}
	if c := w.get("/repository/commits/" + w.sha).Object(t); text(c, "title") != "first" ||
		text(c, "message") != "first\n\nwith a body\n" ||
		text(c, "short_id") != w.sha[:8] {
		t.Errorf("title and message: %v", c)
	}
	want := ".tekton/push.yaml -README.md docs/a b.md>moved.md +new"
	if got := files(anys(w.get("/repository/commits/" + second + "/diff").List(t))); got != want {
		t.Errorf("diff: got %s, want %s", got, want)
	}
	page := w.get("/repository/commits/" + second + "/diff?per_page=3&page=2")
	if got := files(anys(page.List(t))); got != "+new" || page.Header.Get("X-Total") != "4" ||
		page.Header.Get("X-Prev-Page") != "1" {
		t.Errorf("its second page: %s %v", got, page.Header)
	}
	refs := func(query string) string {
		var out []string
		for _, r := range w.get("/repository/commits/" + w.sha + "/refs" + query).List(t) {
			out = append(out, text(r, "type")+" "+text(r, "name"))
		}
		return strings.Join(out, ", ")
	}
	if diff := cmp.Diff([]string{"branch feature/x, branch main, tag v1", "tag v1"},
		[]string{refs(""), refs("?type=tag")}); diff != "" {
		t.Errorf("refs (-want +got):\n%s", diff)
	}
	w.post(map[string]any{"state": "running"})
	if c := w.get("/repository/commits/" + w.sha).Object(t); text(c, "status") != "running" || c["last_pipeline"] == nil {
		t.Errorf("a commit with a pipeline: %v", c)
	}
}

func TestCompare(t *testing.T) {
	w := newFixture(t, Options{DiffLimit: 2})
	w.Commit(app, "topic", Change{Files: map[string]string{"b": "1", "c": "2"}})
	w.Commit(app, "main", Change{Files: map[string]string{"other": "o"}})
	shape := func(query string) string {
		o := w.get("/repository/compare?" + query).Object(t)
		return fmt.Sprint(len(o["commits"].([]any)), " ", files(o["diffs"].([]any)), " over=", o["compare_timeout"], " same=",
			o["compare_same_ref"])
	}
	for query, want := range map[string]string{
		"from=main&to=topic":               "1 +b +c over=false same=false",
		"from=main&to=topic&straight=true": "1 +b +c over=true same=false",
		"from=main&to=main":                "0  over=false same=true",
	} {
		if got := shape(query); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
}

func TestMergeRequest(t *testing.T) {
	w := newFixture(t, Options{DiffLimit: 2})
	fork := w.CreateProject("eve/app", ProjectOptions{ForkOf: app, Visibility: Public})
	head := w.Commit("eve/app", "topic", Change{Author: "eve", Files: map[string]string{"a": "1", "b": "2", "c": "3"}})
	iid := w.OpenMergeRequest(NewMergeRequest{
		Target: app, Source: "eve/app", SourceBranch: "topic", Author: "eve", Draft: true, Labels: []string{"z", "a"},
	})
	m := w.get("/merge_requests/" + itoa(iid)).Object(t)
	refs := m["diff_refs"].(map[string]any)
	want := map[string]any{"sha": head, "state": "opened", "draft": true, "title": "Draft: topic",
		"labels": []any{"a", "z"},
		"source": float64(fork.ID), "target": float64(w.project.ID), "changes": "2+", "author": "eve", "base": w.sha,
		"head": head,
		"web":  w.project.WebURL + "/-/merge_requests/1"}
	got := map[string]any{"sha": m["sha"], "state": m["state"], "draft": m["draft"], "title": m["title"],
		"labels": m["labels"],
		"source": m["source_project_id"], "target": m["target_project_id"], "changes": m["changes_count"],
		"author": m["author"].(map[string]any)["username"], "base": refs["base_sha"], "head": refs["head_sha"],
		"web": m["web_url"]}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a merge request (-want +got):\n%s", diff)
	}
	if got := files(anys(w.get("/merge_requests/1/diffs").List(t))); got != "+a +b" {
		t.Errorf("diffs, cut at the limit: %s", got)
	}
	if got := len(w.get("/repository/commits/" + head + "/merge_requests").List(t)); got != 1 {
		t.Errorf("merge requests of the fork's commit in the target: %d", got)
	}
	w.ReadyMergeRequest(app, iid, "eve")
	merge := w.Merge(app, iid, "alice")
	m = w.get("/merge_requests/1").Object(t)
	if text(m, "state") != "merged" || text(m, "merge_commit_sha") != merge || m["draft"] != false {
		t.Errorf("merged: %v %v %v", m["state"], m["merge_commit_sha"], m["draft"])
	}
	if w.Branches(app)["main"] != merge || len(w.get("/merge_requests?state=merged").List(t)) != 1 ||
		len(w.get("/merge_requests?state=opened").List(t)) != 0 {
		t.Error("after the merge")
	}
}
