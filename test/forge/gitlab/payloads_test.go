// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/test/forge/internal/asking"
	"github.com/plumbline-ci/plumbline/test/forge/internal/gitdb"
)

func body(t *testing.T, d Delivery) map[string]any {
	t.Helper()
	return reply{asking.Reply{Body: d.Body}}.Object(t)
}

// dig walks down an object by keys.
func dig(o map[string]any, path string) any {
	var v any = o
	for _, k := range strings.Split(path, ".") {
		m, isObject := v.(map[string]any)
		if !isObject {
			return nil
		}
		v = m[k]
	}
	return v
}

func TestPushDelivery(t *testing.T) {
	w := newFixture(t, Options{})
	shape := func(ref string) string {
		d := w.PushDelivery(PushEvent{Project: app, Ref: ref})
		b := body(t, d)
		return fmt.Sprintf("%s: %s %.7s..%.7s checkout=%.7v commits=%d of %v by %s protected=%v", d.Event, b["object_kind"],
			b["before"], b["after"],
			b["checkout_sha"], len(b["commits"].([]any)), b["total_commits_count"], b["user_username"], b["ref_protected"])
	}
	none := gitdb.ZeroSHA[:7]
	second := w.Commit(app, "main", Change{Author: "bob", Files: map[string]string{"b": "1", "README.md": Deleted}})
	b := body(t, w.PushDelivery(PushEvent{Project: app, Ref: "refs/heads/main"}))
	cm := b["commits"].([]any)[0].(map[string]any)
	want := map[string]any{"web": w.project.WebURL, "clone": w.project.CloneURL, "path": app, "namespace": "org/team",
		"level":  0.0,
		"branch": "main", "id": float64(w.project.ID), "added": []any{"b"}, "removed": []any{"README.md"},
		"modified": []any{},
		"homepage": w.project.WebURL, "message": "change", "email": "[REDACTED]"}
	got := map[string]any{"web": dig(b, "project.web_url"), "clone": dig(b, "project.git_http_url"),
		"path":      dig(b, "project.path_with_namespace"),
		"namespace": dig(b, "project.namespace"), "level": dig(b, "project.visibility_level"),
		"branch": dig(b, "project.default_branch"),
		"id":     b["project_id"], "added": cm["added"], "removed": cm["removed"], "modified": cm["modified"],
		"homepage": dig(b, "repository.homepage"), "message": cm["message"], "email": dig(cm, "author.email")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a push (-want +got):\n%s", diff)
	}
	lines := []string{shape("refs/heads/main")}
	w.SetBranch(app, "same", second, "bob")
	lines = append(lines, shape("refs/heads/same"))
	w.CreateTag(app, "v1", second, "bob")
	lines = append(lines, shape("refs/tags/v1"))
	w.DeleteBranch(app, "same", "bob")
	lines = append(lines, shape("refs/heads/same"))
	w.ProtectBranch(app, "many", Maintainer)
	head := ""
	for i := range 21 {
		head = w.Commit(app, "many", Change{Author: "bob", Files: map[string]string{"n": fmt.Sprint(i)}})
	}
	w.DeleteBranch(app, "many", "bob")
	w.SetBranch(app, "many", head, "bob")
	lines = append(lines, shape("refs/heads/many"))
	wanted := []string{
		"Push Hook: push " + w.sha[:7] + ".." + second[:7] + " checkout=" + second[:7] +
			" commits=1 of 1 by bob protected=false",
		"Push Hook: push " + none + ".." + second[:7] + " checkout=" + second[:7] + " commits=0 of 0 by bob protected=false",
		"Tag Push Hook: tag_push " + none + ".." + second[:7] + " checkout=" + second[:7] +
			" commits=1 of 1 by bob protected=false",
		"Push Hook: push " + second[:7] + ".." + none + " checkout=<nil> commits=0 of 0 by bob protected=false",
		"Push Hook: push " + none + ".." + head[:7] + " checkout=" + head[:7] + " commits=20 of 21 by bob protected=true",
	}
	if diff := cmp.Diff(wanted, lines); diff != "" {
		t.Errorf("pushes (-want +got):\n%s", diff)
	}
}

func TestMergeRequestDelivery(t *testing.T) {
	w := newFixture(t, Options{})
	fork := w.CreateProject("eve/app", ProjectOptions{ForkOf: app})
	one := w.Commit("eve/app", "topic", Change{Author: "eve", Files: map[string]string{"a": "1"}})
	iid := w.OpenMergeRequest(NewMergeRequest{
		Target: app, Source: "eve/app", SourceBranch: "topic", Author: "eve", Draft: true,
	})
	told := func() map[string]any {
		return body(t, w.MergeRequestDelivery(MergeRequestEvent{Project: app, IID: iid}))
	}
	shape := func() string {
		b := told()
		changes := b["changes"].(map[string]any)
		delete(changes, "updated_at")
		keys := slices.Sorted(maps.Keys(changes))
		return fmt.Sprintf("%v by %v: %v draft=%v last=%.7v oldrev=%.7v changes=%v", dig(b, "object_attributes.action"),
			dig(b, "user.username"),
			dig(b, "object_attributes.state"), dig(b, "object_attributes.draft"), dig(b, "object_attributes.last_commit.id"),
			dig(b, "object_attributes.oldrev"), keys)
	}
	b := told()
	want := map[string]any{"kind": "merge_request", "type": "merge_request", "project": app, "source": "eve/app",
		"target":   app,
		"sourceID": float64(fork.ID), "targetID": float64(w.project.ID), "iid": 1.0, "email": "[REDACTED]"}
	got := map[string]any{"kind": b["object_kind"], "type": b["event_type"],
		"project":  dig(b, "project.path_with_namespace"),
		"source":   dig(b, "object_attributes.source.path_with_namespace"),
		"target":   dig(b, "object_attributes.target.path_with_namespace"),
		"sourceID": dig(b, "object_attributes.source_project_id"), "targetID": dig(b, "object_attributes.target_project_id"),
		"iid": dig(b, "object_attributes.iid"), "email": dig(b, "user.email")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a fork's merge request (-want +got):\n%s", diff)
	}
	lines := []string{shape()}
	two := w.Commit("eve/app", "topic", Change{Author: "eve", Files: map[string]string{"a": "2"}})
	lines = append(lines, shape())
	w.ReadyMergeRequest(app, iid, "eve")
	lines = append(lines, shape())
	w.SetLabels(app, iid, "alice", "ok-to-test")
	lines = append(lines, shape())
	labels := dig(told(), "changes.labels").(map[string]any)
	if len(labels["previous"].([]any)) != 0 ||
		text(labels["current"].([]any)[0].(map[string]any), "title") != "ok-to-test" {
		t.Errorf("labels: %v", labels)
	}
	w.CloseMergeRequest(app, iid, "alice")
	lines = append(lines, shape())
	w.ReopenMergeRequest(app, iid, "eve")
	lines = append(lines, shape())
	a, z := one[:7], two[:7]
	wanted := []string{
		"open by eve: opened draft=true last=" + a + " oldrev=<nil> changes=[merge_status]",
		"update by eve: opened draft=true last=" + z + " oldrev=" + a + " changes=[]",
		"update by eve: opened draft=false last=" + z + " oldrev=<nil> changes=[draft title]",
		"update by alice: opened draft=false last=" + z + " oldrev=<nil> changes=[labels]",
		"close by alice: closed draft=false last=" + z + " oldrev=<nil> changes=[state_id]",
		"reopen by eve: opened draft=false last=" + z + " oldrev=<nil> changes=[state_id]",
	}
	if diff := cmp.Diff(wanted, lines); diff != "" {
		t.Errorf("what the hooks tell (-want +got):\n%s", diff)
	}
}

// The fields of a payload that GitLab.com sent in March 2024, and those that
// its documentation adds since.
func TestMergeRequestDeliveryHasAllFields(t *testing.T) {
	w := newFixture(t, Options{})
	w.Commit(app, "topic", Change{Files: map[string]string{"a": "1"}})
	iid := w.OpenMergeRequest(NewMergeRequest{Target: app, SourceBranch: "topic", Labels: []string{"x"}})
	b := body(t, w.MergeRequestDelivery(MergeRequestEvent{Project: app, IID: iid}))
	for where, want := range map[string]string{
		"": "changes event_type labels object_attributes object_kind project repository user",
		"object_attributes": "action assignee_id assignee_ids author_id blocking_discussions_resolved created_at description " +
			"detailed_merge_status draft first_contribution head_pipeline_id human_time_change human_time_estimate " +
			"human_total_time_spent id iid labels last_commit last_edited_at last_edited_by_id merge_commit_sha merge_error " +
			"merge_params merge_status merge_user_id merge_when_pipeline_succeeds milestone_id prepared_at reviewer_ids source " +
			"source_branch source_project_id state state_id target target_branch target_project_id time_change time_estimate " +
			"title total_time_spent updated_at updated_by_id url work_in_progress",
		"object_attributes.last_commit": "author id message timestamp title url",
		"project": "avatar_url ci_config_path default_branch description git_http_url git_ssh_url homepage http_url id name " +
			"namespace path_with_namespace ssh_url url visibility_level web_url",
		"user":       "avatar_url email id name username",
		"repository": "description homepage name url",
	} {
		o := b
		if where != "" {
			o = dig(b, where).(map[string]any)
		}
		if diff := cmp.Diff(want, strings.Join(slices.Sorted(maps.Keys(o)), " ")); diff != "" {
			t.Errorf("fields of %q (-want +got):\n%s", where, diff)
		}
	}
}

func TestNoteDelivery(t *testing.T) {
	w := newFixture(t, Options{})
	w.Commit(app, "topic", Change{Files: map[string]string{"a": "1"}})
	iid := w.OpenMergeRequest(NewMergeRequest{Target: app, SourceBranch: "topic"})
	d := w.NoteDelivery(w.AddNote(app, iid, "bob", "/retest"))
	b := body(t, d)
	if d.Event != NoteHook || dig(b, "object_attributes.note") != "/retest" ||
		dig(b, "object_attributes."+notedType) != "MergeRequest" ||
		dig(b, "object_attributes.action") != "create" || dig(b, "merge_request.iid") != 1.0 ||
		dig(b, "merge_request.state") != "opened" ||
		dig(b, "user.username") != "bob" || b["commit"] != nil {
		t.Errorf("a note on a merge request: %s", d.Body)
	}
	b = body(t, w.NoteDelivery(w.AddCommitNote(app, w.sha, "bob", "/test x")))
	if dig(b, "object_attributes."+notedType) != "Commit" || dig(b, "object_attributes.commit_id") != w.sha ||
		dig(b, "commit.id") != w.sha ||
		b["merge_request"] != nil {
		t.Errorf("a note on a commit: %v", b)
	}
}

func TestCustomEvent(t *testing.T) {
	w := newFixture(t, Options{})
	d := w.EventDelivery(w.hook, "Pipeline Hook", map[string]any{"object_kind": "pipeline"})
	d.SetToken("wrong")
	if d.Header.Get("X-Gitlab-Token") != "wrong" || d.Header.Get("X-Gitlab-Event") != "Pipeline Hook" ||
		!json.Valid(d.Body) {
		t.Errorf("%v %s", d.Header, d.Body)
	}
	d.SetToken("")
	if _, sent := d.Header["X-Gitlab-Token"]; sent {
		t.Error("an empty token is sent")
	}
}
