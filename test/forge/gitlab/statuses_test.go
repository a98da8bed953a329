// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStatusTransitions(t *testing.T) {
	cannot := func(event, from string) string {
		return "400 Cannot transition status via :" + event + " from :" + from +
			` (Reason(s): Status cannot transition via "` + event + `")`
	}
	for name, tc := range map[string]struct {
		posts string // states, one after the other
		last  string // what the last one is answered
		left  string // all statuses: state, * if retried
	}{
		"a first status may be pending":               {"pending", "201", "pending"},
		"a first status may be running":               {"running", "201", "running"},
		"a first status may be finished":              {"success", "201", "success"},
		"a first status may be canceled":              {"canceled", "201", "canceled"},
		"a first status may be skipped":               {"skipped", "201", "skipped"},
		"pending takes running":                       {"pending running", "201", "running"},
		"pending takes skipped":                       {"pending skipped", "201", "skipped"},
		"pending takes a result":                      {"pending failed", "201", "failed"},
		"running takes a result":                      {"running success", "201", "success"},
		"running takes canceled":                      {"running canceled", "201", "canceled"},
		"pending refuses pending":                     {"pending pending", cannot("enqueue", "pending"), "pending"},
		"running refuses running":                     {"running running", cannot("run", "running"), "running"},
		"running refuses pending":                     {"running pending", cannot("enqueue", "running"), "running"},
		"running refuses skipped":                     {"running skipped", cannot("skip", "running"), "running"},
		"after a result a new status is made":         {"success running", "201", "success* running"},
		"after a result the same result is a new one": {"failed failed", "201", "failed* failed"},
		"after skipped a new status is made":          {"skipped pending", "201", "skipped* pending"},
		"an unknown state is refused":                 {"neutral", "400 state does not have a valid value", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, Options{})
			var r reply
			for _, state := range strings.Fields(tc.posts) {
				r = w.post(map[string]any{"state": state, "name": "ci"})
			}
			got := strings.TrimSpace(fmt.Sprint(r.Status, " ", r.said()))
			if got != tc.last {
				t.Errorf("the last post: got %s, want %s", got, tc.last)
			}
			var left []string
			for _, s := range w.StatusesFor(app, w.sha) {
				mark := ""
				if s.Retried {
					mark = "*"
				}
				left = append(left, s.State+mark)
			}
			if diff := cmp.Diff(tc.left, strings.Join(left, " ")); diff != "" {
				t.Errorf("statuses (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatusFields(t *testing.T) {
	long, ok255 := strings.Repeat("é", 256), strings.Repeat("é", 255)
	const tooLong = "is too long (maximum is 255 characters)"
	for name, tc := range map[string]struct {
		fields map[string]any
		want   string
	}{
		"255 characters of any size are taken": {map[string]any{"description": ok255}, "201"},
		"a description of 256 characters is refused": {
			map[string]any{"description": long}, `400 {"description":["` + tooLong + `"]}`,
		},
		"a link of 256 characters is refused": {
			map[string]any{"target_url": "https://" + long}, `400 {"target_url":["` + tooLong + `"]}`,
		},
		"a ref of 256 characters is refused": {map[string]any{"ref": long}, `400 {"ref":["` + tooLong + `"]}`},
		"a link must be one of the web": {
			map[string]any{"target_url": "git://x"}, `400 {"target_url":["is blocked: Only allowed schemes are http, https"]}`,
		},
		"the state is needed": {map[string]any{"state": ""}, "400 state is missing"},
		"an unknown pipeline is refused": {
			map[string]any{"pipeline_id": 7}, "404 404 Pipeline for pipeline_id, sha and ref Not Found",
		},
		"without a name it is context, then the default": {map[string]any{"context": "other"}, "201"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, Options{})
			fields := map[string]any{"state": "success"}
			for k, v := range tc.fields {
				fields[k] = v
			}
			r := w.post(fields)
			if got := strings.TrimSpace(fmt.Sprint(r.Status, " ", r.said())); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			want := 0
			if tc.want == "201" {
				want = 1
			}
			if got := len(w.StatusesFor(app, w.sha)); got != want {
				t.Errorf("%d statuses were made, want %d", got, want)
			}
		})
	}
}

func TestPostStatusNeedsRights(t *testing.T) {
	for name, tc := range map[string]struct {
		level Level
		scope string
		sha   string
		want  string
	}{
		"a developer may":                           {Developer, ScopeAPI, "", "201"},
		"a reporter may not":                        {Reporter, ScopeAPI, "", "403 403 Forbidden"},
		"a guest may not":                           {Guest, ScopeAPI, "", "403 403 Forbidden"},
		"who is no member does not see the project": {NoAccess, ScopeAPI, "", "404 404 Project Not Found"},
		"a token to read may not":                   {Developer, ScopeReadAPI, "", "403 insufficient_scope"},
		"a token for repositories may not":          {Owner, ScopeReadRepository, "", "403 insufficient_scope"},
		"an unknown commit is refused": {
			Developer, ScopeAPI, strings.Repeat("0", 40), "404 404 Commit Not Found",
		},
		"who may not write is told so before a SHA matters": {Reporter, ScopeAPI, "nobody", "403 403 Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, Options{})
			sha := tc.sha
			if sha == "" {
				sha = w.sha
			}
			if tc.level != NoAccess {
				w.SetMember(app, "carol", tc.level)
			}
			tok := w.CreateToken(NewToken{User: "carol", Scopes: []string{tc.scope}})
			r := w.do("POST", at+"/statuses/"+sha, tok.Value, map[string]any{"state": "running"})
			if got := strings.TrimSpace(fmt.Sprint(r.Status, " ", r.said())); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestProtectedBranchNeedsMaintainer(t *testing.T) {
	w := newFixture(t, Options{})
	w.ProtectBranch(app, "main", Maintainer)
	if r := w.post(map[string]any{"state": "running"}); r.Status != 403 {
		t.Errorf("a developer on a protected branch: %d", r.Status)
	}
	w.SetMember(app, w.bot.Username, Maintainer)
	if r := w.post(map[string]any{"state": "running"}); r.Status != 201 {
		t.Errorf("a maintainer on a protected branch: %d %s", r.Status, r.said())
	}
}

func TestStatusOfFork(t *testing.T) {
	w := newFixture(t, Options{})
	w.CreateProject("eve/app", ProjectOptions{ForkOf: app, Visibility: Public})
	head := w.Commit("eve/app", "topic", Change{Author: "eve", Files: map[string]string{"a": "1"}})
	post := func(project string, fields map[string]any) string {
		fields["state"] = "running"
		r := w.do("POST", api+"/projects/"+project+"/statuses/"+head, w.token, fields)
		return fmt.Sprint(r.Status, " ", r.said())
	}
	got := []string{post("org%2Fteam%2Fapp", map[string]any{"ref": "topic"})}
	w.OpenMergeRequest(NewMergeRequest{Target: app, Source: "eve/app", SourceBranch: "topic", Author: "eve"})
	got = append(got, post("eve%2Fapp", map[string]any{"ref": "topic"}), post("org%2Fteam%2Fapp", map[string]any{}),
		post("org%2Fteam%2Fapp", map[string]any{"ref": "topic"}))
	want := []string{"404 404 Commit Not Found", "403 403 Forbidden", "404 404 References for commit Not Found", "201 "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the target before the merge request, the source, the target without and with a ref (-want +got):\n%s", diff)
	}
}

func TestStatusesAreUpdatedAndListed(t *testing.T) {
	w := newFixture(t, Options{})
	first := w.post(map[string]any{
		"state": "running", "name": "a", "description": "runs", "target_url": "http://x/1",
	}).Object(t)
	// A form does as well as JSON.
	if r := w.do("POST", at+"/statuses/"+w.sha, w.token,
		url.Values{"state": {"running"}, "name": {"form"}}); r.Status != 201 {
		t.Errorf("a form: %d %s", r.Status, r.said())
	}
	// What is not sent stays.
	second := w.post(map[string]any{"state": "success", "name": "a", "description": "done"}).Object(t)
	if second["id"] != first["id"] || text(second, "target_url") != "http://x/1" ||
		text(second, "description") != "done" ||
		second["finished_at"] == nil || second["pipeline_id"] != first["pipeline_id"] || text(second, "ref") != "main" {
		t.Errorf("an update keeps the id and what was not sent: %v", second)
	}
	w.post(map[string]any{"state": "pending", "name": "a"})
	w.post(map[string]any{"state": "failed", "name": "b"})
	list := func(query string) string {
		var out []string
		for _, s := range w.get("/repository/commits/" + w.sha + "/statuses" + query).List(t) {
			out = append(out, text(s, "name")+":"+text(s, "status"))
		}
		return strings.Join(out, " ")
	}
	for query, want := range map[string]string{
		"":                      "form:running a:pending b:failed",
		"?all=true":             "a:success form:running a:pending b:failed",
		"?all=1&name=a":         "a:success a:pending",
		"?name=b":               "b:failed",
		"?ref=other":            "",
		"?all=true&sort=desc":   "b:failed a:pending form:running a:success",
		"?per_page=1&page=2":    "a:pending",
		"?all=true&pipeline_id": "a:success form:running a:pending b:failed",
	} {
		if got := list(query); got != want {
			t.Errorf("%q: got %s, want %s", query, got, want)
		}
	}
	writes := w.WritesForStatus(app, w.sha, "a")
	if len(writes) != 3 || writes[1].StatusID != int64(first["id"].(float64)) || writes[1].Description != "done" ||
		!writes[1].Applied {
		t.Errorf("write log: %+v", writes)
	}
	if cur, found := w.Current(app, w.sha, "a"); !found || cur.State != "pending" {
		t.Errorf("current: %+v %v", cur, found)
	}
}

func TestAnotherUsersStatusIsNotUpdated(t *testing.T) {
	w := newFixture(t, Options{})
	w.post(map[string]any{"state": "running", "name": "ci"})
	other := w.CreateToken(NewToken{Project: app})
	r := w.do("POST", at+"/statuses/"+w.sha, other.Value, map[string]any{"state": "running", "name": "ci"})
	all := w.StatusesFor(app, w.sha)
	if r.Status != 201 || len(all) != 2 || !all[0].Retried || all[1].PipelineID != all[0].PipelineID {
		t.Errorf("%d; statuses %+v", r.Status, all)
	}
}

func TestOptionsOfStatuses(t *testing.T) {
	old := newFixture(t, Options{NoSkipped: true})
	if r := old.post(map[string]any{"state": "skipped"}); r.said() != "state does not have a valid value" {
		t.Errorf("skipped on an old server: %d %s", r.Status, r.said())
	}
	newer := newFixture(t, Options{AcceptRepeated: true})
	newer.post(map[string]any{"state": "running"})
	if r := newer.post(map[string]any{"state": "running", "description": "x"}); r.Status != 201 ||
		len(newer.StatusesFor(app, newer.sha)) != 1 {
		t.Errorf("a repeated state on a server that takes it: %d %s", r.Status, r.said())
	}
}

func TestEachRefHasItsOwnPipeline(t *testing.T) {
	w := newFixture(t, Options{})
	first := w.post(map[string]any{"state": "failed", "name": "ci", "ref": "main"}).Object(t)
	w.post(map[string]any{"state": "success", "name": "ci", "ref": "v1"})
	w.NativePipeline(app, "refs/merge-requests/1/head", w.sha)
	var got []string
	for _, p := range w.Pipelines(app, w.sha) {
		got = append(got, p.Ref+" "+p.Status)
	}
	if diff := cmp.Diff([]string{"main failed", "v1 success", "refs/merge-requests/1/head success"}, got); diff != "" {
		t.Errorf("pipelines (-want +got):\n%s", diff)
	}
	for query, want := range map[string]int{"": 3, "?ref=main": 1, "?ref=v1&name=ci": 1,
		"?ref=refs%2Fmerge-requests%2F1%2Fhead": 1} {
		if got := len(w.get("/repository/commits/" + w.sha + "/statuses" + query).List(t)); got != want {
			t.Errorf("%q lists %d statuses, want %d", query, got, want)
		}
	}
	r := w.post(map[string]any{"state": "success", "name": "ci", "ref": "v1", "pipeline_id": first["pipeline_id"]})
	if r.Status != 404 {
		t.Errorf("a pipeline of another ref takes a status: %d %s", r.Status, r.said())
	}
}
