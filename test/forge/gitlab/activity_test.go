// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestActivityListsPushes(t *testing.T) {
	w := newFixture(t, Options{})
	second := w.Commit(app, "feature/x", Change{Author: "bob", Files: map[string]string{"a": "1"}})
	w.SetBranch(app, "feature/x", w.sha, "eve")
	w.CreateTag(app, "v1", w.sha, "bob")
	w.DeleteBranch(app, "feature/x", "eve")
	var got []string
	for _, e := range w.get("/events?action=pushed").List(t) {
		d := e["push_data"].(map[string]any)
		short := func(name string) string { return fmt.Sprintf("%.7v", d[name]) }
		got = append(got, fmt.Sprint(text(e, "author_username"), " ", text(e, "action_name"), " ", text(d, "ref_type"), " ",
			text(d, "ref"), " ", short("commit_from"), " ", short("commit_to")))
	}
	want := []string{
		"eve deleted branch feature/x " + w.sha[:7] + " <nil>", "bob pushed new tag v1 <nil> " + w.sha[:7],
		"eve pushed to branch feature/x " + second[:7] + " " + w.sha[:7],
		"bob pushed new branch feature/x <nil> " + second[:7],
	}
	if diff := cmp.Diff(want, got[:4]); diff != "" {
		t.Errorf("newest first (-want +got):\n%s", diff)
	}
	if got := w.get("/events?action=merged").List(t); len(got) != 0 {
		t.Errorf("other activity: %v", got)
	}
	if page := w.get("/events?per_page=2"); len(page.List(t)) != 2 || page.Header.Get("X-Next-Page") != "2" {
		t.Errorf("its first page: %v", page.Header)
	}
}

func TestTag(t *testing.T) {
	w := newFixture(t, Options{})
	w.CreateTag(app, "v1/a", w.sha, "bob")
	tag := w.get("/repository/tags/v1%2Fa").Object(t)
	if commit := tag["commit"].(map[string]any); text(tag, "name") != "v1/a" || text(tag, "target") != w.sha ||
		text(commit, "id") != w.sha {
		t.Errorf("%v", tag)
	}
	if got := w.get("/repository/tags/v2"); got.Status != 404 {
		t.Errorf("a tag that is not there: %d", got.Status)
	}
}

func TestVersionsOfMergeRequest(t *testing.T) {
	w := newFixture(t, Options{})
	first := w.Commit(app, "topic", Change{Files: map[string]string{"a": "1"}})
	iid := w.OpenMergeRequest(NewMergeRequest{Target: app, SourceBranch: "topic"})
	second := w.Commit(app, "topic", Change{Files: map[string]string{"a": "2"}})
	w.SetLabels(app, iid, "bob", "x")
	var heads []string
	for _, v := range w.get("/merge_requests/" + itoa(iid) + "/versions").List(t) {
		heads = append(heads, text(v, "head_commit_sha"))
	}
	if got := strings.Join(heads, " "); got != second+" "+first {
		t.Errorf("%s, want %s %s", got, second, first)
	}
}
