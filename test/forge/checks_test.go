// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func annotations(n int, change map[string]any) []any {
	var out []any
	for range n {
		a := map[string]any{"path": "a", "start_line": 1, "end_line": 1, "annotation_level": "failure", "message": "m"}
		for k, v := range change {
			a[k] = v
			if v == nil {
				delete(a, k)
			}
		}
		out = append(out, a)
	}
	return out
}

func TestCheckRunRules(t *testing.T) {
	w := newFixture(t, Options{})
	tok := w.token(w.inst, nil)
	output := func(change map[string]any) map[string]any {
		o := map[string]any{"title": "t", "summary": "s"}
		for k, v := range change {
			o[k] = v
			if v == nil {
				delete(o, k)
			}
		}
		return map[string]any{"output": o}
	}
	for name, tc := range map[string]struct {
		change  map[string]any // nil removes a field
		status  int
		message string
	}{
		"name and SHA are enough": {nil, 201, ""},
		"a name is required":      {map[string]any{"name": nil}, 422, `"name" wasn't supplied.`},
		"an unknown SHA is refused": {
			map[string]any{"head_sha": zeroSHA}, 422, "No commit found for SHA: " + zeroSHA,
		},
		"completed needs a conclusion": {
			map[string]any{"status": "completed"}, 422, `"conclusion" wasn't supplied.`,
		},
		"completed_at needs a conclusion": {
			map[string]any{"completed_at": "2026-01-02T03:04:05Z"}, 422, `"conclusion" wasn't supplied.`,
		},
		"a conclusion must be a known one": {map[string]any{"conclusion": "great"}, 422, "great is not a member of"},
		"only GitHub concludes stale":      {map[string]any{"conclusion": "stale"}, 422, "stale is not a member of"},
		"only Actions sets waiting":        {map[string]any{"status": "waiting"}, 422, "waiting is not a member of"},
		"a conclusion alone completes":     {map[string]any{"conclusion": "success"}, 201, ""},
		"a time is ISO 8601": {
			map[string]any{"started_at": "yesterday"}, 422, "not a valid date-time",
		},
		"external_id is a string": {
			map[string]any{"external_id": 5}, 422, "For 'properties/external_id', 5 is not a string.",
		},
		"details_url is http":          {map[string]any{"details_url": "ftp://x/y"}, 422, "Validation Failed"},
		"details_url may not be empty": {map[string]any{"details_url": ""}, 422, "Validation Failed"},
		"an output needs a title":      {output(map[string]any{"title": nil}), 422, `"title" wasn't supplied.`},
		"an output needs a summary": {
			output(map[string]any{"summary": nil}), 422, `"summary" wasn't supplied.`,
		},
		"65535 characters fit, whatever their size": {output(map[string]any{"text": strings.Repeat("é", 65535)}), 201, ""},
		"65536 characters of text do not": {output(map[string]any{"text": strings.Repeat("a", 65536)}), 422,
			"Only 65535 characters are allowed; 65536 were supplied."},
		"nor of the summary": {output(map[string]any{"summary": strings.Repeat("a", 65536)}), 422,
			"Only 65535 characters are allowed; 65536 were supplied."},
		"50 annotations fit": {output(map[string]any{"annotations": annotations(50, nil)}), 201, ""},
		"51 do not": {output(map[string]any{"annotations": annotations(51, nil)}), 422,
			"No more than 50 items are allowed; 51 were supplied."},
		"an annotation needs a path": {
			output(map[string]any{"annotations": annotations(1, map[string]any{"path": nil})}), 422, `"path" wasn't supplied.`,
		},
		"a message of 64 KB fits": {
			output(map[string]any{
				"annotations": annotations(1, map[string]any{"message": strings.Repeat("m", 64<<10)}),
			}), 201, "",
		},
		"a longer one does not": {
			output(map[string]any{
				"annotations": annotations(1, map[string]any{"message": strings.Repeat("m", 64<<10+1)}),
			}), 422, "Only 65536 characters are allowed; 65537 were supplied.",
		},
		"an annotation's level is a known one": {output(map[string]any{
			"annotations": annotations(1, map[string]any{"annotation_level": "bad"}),
		}), 422, "bad is not a member of"},
	} {
		t.Run(name, func(t *testing.T) {
			body := map[string]any{"name": "ci", "head_sha": w.sha}
			for k, v := range tc.change {
				body[k] = v
				if v == nil {
					delete(body, k)
				}
			}
			r := w.do("POST", "/api/v3/repos/org/app/check-runs", tok, body)
			if r.Status != tc.status || !strings.Contains(r.message(), tc.message) {
				t.Errorf("got %d %q, want %d with %q", r.Status, r.message(), tc.status, tc.message)
			}
		})
	}
}

func TestCheckRunLife(t *testing.T) {
	w := newFixture(t, Options{})
	tok := w.token(w.inst, nil)
	create := w.do("POST", "/repos/org/app/check-runs", tok,
		map[string]any{"name": "ci", "head_sha": w.sha, "external_id": "run-1"})
	id := itoa(int64(create.Object(t)["id"].(float64)))
	var states []string
	for _, body := range []map[string]any{
		{"status": "in_progress"},
		{"conclusion": "failure", "output": map[string]any{"title": "t", "summary": "s"}},
		{"status": "in_progress"}, // does not open it again
		{"conclusion": "success"},
	} {
		r := w.do("PATCH", "/repos/org/app/check-runs/"+id, tok, body)
		o := r.Object(t)
		states = append(states, text(o, "status")+" "+text(o, "conclusion"))
	}
	if diff := cmp.Diff([]string{"in_progress ", "completed failure", "completed failure", "completed success"},
		states); diff != "" {
		t.Errorf("states after each update (-want +got):\n%s", diff)
	}
	var log []string
	for _, x := range w.WritesForCheck("org/app", w.sha, "ci") {
		log = append(log, x.Method+" "+x.ExternalID+" "+x.CheckStatus+" "+x.Conclusion)
	}
	want := []string{"POST run-1  ", "PATCH run-1 in_progress ", "PATCH run-1 completed failure",
		"PATCH run-1 in_progress ", "PATCH run-1 completed success"}
	if diff := cmp.Diff(want, log); diff != "" {
		t.Errorf("write log (-want +got):\n%s", diff)
	}
	cur, found := w.Current("org/app", w.sha, "ci")
	if !found || cur.Conclusion != "success" || cur.Updates != 4 || cur.Title != "t" {
		t.Errorf("current check run: %+v", cur)
	}
}

func TestCheckRunOfAnotherApp(t *testing.T) {
	w := newFixture(t, Options{})
	first := w.app
	tok := w.token(w.inst, nil)
	id := w.do("POST", "/repos/org/app/check-runs", tok,
		map[string]any{"name": "ci", "head_sha": w.sha}).Object(t)["id"].(float64)
	w.app = w.CreateApp(8, "other", testKey(t), "")
	theirs := w.token(w.Install(8, "org"), nil)
	r := w.do("PATCH", "/repos/org/app/check-runs/"+itoa(int64(id)), theirs, map[string]any{"conclusion": "success"})
	if r.Status != 403 || !strings.Contains(r.message(),
		"check run can only be modified by the GitHub App that created it") {
		t.Errorf("got %d %q", r.Status, r.message())
	}
	if r := w.do("POST", "/app/installations/"+itoa(w.inst)+"/access_tokens", w.jwt(), nil); r.Status != 404 {
		t.Errorf("a token for another App's installation: got %d, want 404", r.Status)
	}
	w.do("POST", "/repos/org/app/check-runs", theirs, map[string]any{"name": "ci", "head_sha": w.sha})
	for query, want := range map[string]int{"": 2, "?app_id=8": 1, "?app_id=9": 0, "?check_name=ci&filter=all": 2,
		"?check_name=x": 0, "?status=completed": 0} {
		o := w.do("GET", "/repos/org/app/commits/"+w.sha+"/check-runs"+query, tok, nil).Object(t)
		if got := int(o["total_count"].(float64)); got != want {
			t.Errorf("list %q: got %d, want %d", query, got, want)
		}
	}
	if first.ID == w.app.ID {
		t.Fatal("the test has only one App")
	}
}

func TestCheckRunList(t *testing.T) {
	w := newFixture(t, Options{})
	tok := w.token(w.inst, nil)
	for range 35 {
		w.do("POST", "/repos/org/app/check-runs", tok, map[string]any{"name": "ci", "head_sha": w.sha})
	}
	list := func(ref, query string) reply {
		return w.do("GET", "/api/v3/repos/org/app/commits/"+ref+"/check-runs"+query, tok, nil)
	}
	count := func(r reply) int { return len(r.Object(t)["check_runs"].([]any)) }
	if got := count(list(w.sha, "")); got != 1 {
		t.Errorf("filter=latest is the default and shows one of a name: got %d", got)
	}
	first := list("main", "?filter=all")
	if got := count(first); got != 30 {
		t.Errorf("a page holds 30 by default: got %d", got)
	}
	want := "<" + w.URL() + "/api/v3/repos/org/app/commits/main/check-runs?filter=all&page=2>; rel=\"next\""
	if !strings.Contains(first.Header.Get("Link"), want) {
		t.Errorf("Link is %q, want it to hold %q", first.Header.Get("Link"), want)
	}
	if got := count(list(w.sha, "?filter=all&page=2")); got != 5 {
		t.Errorf("the second page holds the rest: got %d", got)
	}
	if r := list(zeroSHA, ""); r.Status != 422 || r.message() != "No commit found for SHA: "+zeroSHA {
		t.Errorf("an unknown ref: got %d %q", r.Status, r.message())
	}
}

func TestEarlyConclusion(t *testing.T) {
	for _, strict := range []bool{false, true} {
		w := newFixture(t, Options{RefuseEarlyConclusion: strict})
		r := w.do("POST", "/repos/org/app/check-runs", w.token(w.inst, nil),
			map[string]any{"name": "ci", "head_sha": w.sha, "status": "in_progress", "conclusion": "success"})
		if strict && r.Status != 422 {
			t.Errorf("strict: got %d, want 422", r.Status)
		}
		if !strict && (r.Status != 201 || text(r.Object(t), "status") != "completed") {
			t.Errorf("as documented the conclusion completes the check: got %d %s", r.Status, r.Body)
		}
	}
}
