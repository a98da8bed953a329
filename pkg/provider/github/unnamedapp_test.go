// SPDX-License-Identifier: Apache-2.0

package github

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// A server that filters by App without naming it lists our checks: a check of an earlier process is
// adopted, finished and never posted twice.
func TestPutAcceptsCheckOfUnnamedApp(t *testing.T) {
	f, w := openFake(t, forge.Options{ChecksWithoutApp: true})
	sha := f.Commit("main", map[string]string{"x": "y"})
	client, err := w.Provider.Connect(t.Context(), w.BaseURL, w.Project, w.Credentials)
	if err != nil {
		t.Fatal(err)
	}
	b := bench{f, client, git.Head{SHA: sha, Project: w.Project}}
	first := b.duplicate(t, check(status.Queued, ""))
	for _, next := range []status.Check{check(status.InProgress, ""), check(status.Completed, status.Success)} {
		if id, err := client.Put(t.Context(), b.head, "", next, false); err != nil || id != first {
			t.Errorf("%s: check %q, %v, want the first one, %s", next.State, id, err, first)
		}
	}
	orphaned := check(status.Queued, "")
	orphaned.ExternalID = "orphaned"
	second := b.duplicate(t, orphaned)
	closing := check(status.Completed, status.Cancelled)
	closing.ExternalID, closing.OnlyOpen = "orphaned", true
	if id, err := client.Put(t.Context(), b.head, second, closing, false); err != nil || id != second {
		t.Errorf("the sweep closes %q, %v, want %s", id, err, second)
	}
	for _, k := range b.ChecksFor(testRepo, sha) {
		if k.Conclusion == "" {
			t.Errorf("check %d stays open", k.ID)
		}
	}
	if got := len(b.ChecksFor(testRepo, sha)); got != 2 {
		t.Errorf("%d checks, want 2", got)
	}
}

// An inconclusive look-up is repeated. A check is posted only if the answer says that there is
// none.
func TestPutRetriesIncompleteList(t *testing.T) {
	ours := check(status.InProgress, "").ExternalID
	entry := func(change map[string]any) map[string]any {
		run := map[string]any{
			"id": 5, "external_id": ours, "name": "build", "status": "in_progress", "app": map[string]any{"id": testApp},
		}
		for key, value := range change {
			run[key] = value
			if value == "absent" {
				delete(run, key)
			}
		}
		return run
	}
	for name, c := range map[string]struct {
		list   any
		posted bool
	}{
		"nothing":       {list: []any{}, posted: true},
		"another App's": {list: []any{entry(map[string]any{"app": map[string]any{"id": 99}})}, posted: true},
		"another App's without an id": {
			list: []any{entry(map[string]any{"app": map[string]any{"id": 99}, "external_id": nil})}, posted: true,
		},
		"another check's":              {list: []any{entry(map[string]any{"external_id": "other"})}, posted: true},
		"ours, without an external id": {list: []any{entry(map[string]any{"external_id": nil})}, posted: true},
		"another check's, unnamed": {
			list: []any{entry(map[string]any{"external_id": "other", "app": nil})}, posted: true,
		},
		"without App and external id":   {list: []any{entry(map[string]any{"external_id": nil, "app": nil})}},
		"without these fields":          {list: []any{entry(map[string]any{"external_id": "absent", "app": "absent"})}},
		"an App without a number":       {list: []any{entry(map[string]any{"external_id": nil, "app": map[string]any{}})}},
		"ours without a number":         {list: []any{entry(map[string]any{"id": "absent"})}},
		"null":                          {list: []any{nil}},
		"a number without what it says": {list: nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			total := 1
			if all, isList := c.list.([]any); isList {
				total = len(all)
			}
			body, err := json.Marshal(map[string]any{"total_count": total, "check_runs": c.list})
			if err != nil {
				t.Fatal(err)
			}
			b.Inject(forge.Fault{Route: forge.RouteCheckList,
				Do: forge.Answer(http.StatusOK, http.Header{"Content-Type": {"application/json"}}, string(body))})
			_, err = b.client.Put(t.Context(), b.head, "", check(status.InProgress, ""), false)
			if c.posted != (err == nil) || err != nil && !fault.Is(err, fault.Transient) {
				t.Errorf("%v, want a check: %t", err, c.posted)
			}
			if got := len(b.ChecksFor(testRepo, b.head.SHA)) == 1; got != c.posted {
				t.Errorf("posted %t, want %t", got, c.posted)
			}
			if err != nil && !strings.Contains(err.Error(), "looking the check up") {
				t.Errorf("it says %q", err)
			}
		})
	}
}
