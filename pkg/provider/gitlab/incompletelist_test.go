// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/test/forge"
	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// listed makes the service answer a list once whose only entry is the one that it has, changed.
func (b bench) listed(t *testing.T, route string, entry map[string]any, change map[string]any) {
	t.Helper()
	for field, value := range change {
		entry[field] = value
		if value == "absent" {
			delete(entry, field)
		}
	}
	body, err := json.Marshal([]any{entry})
	if len(change) == 0 {
		body = []byte(`[null]`)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.Inject(forgelab.Fault{Route: route, Count: 1, Do: forge.Answer(http.StatusOK, nil, string(body))})
}

// A status in a list that GitLab has filtered is the run's unless it names another ref. What a
// look-up leaves open is asked for again: never is a second status posted beside one that may be
// ours.
func TestPutRetriesIncompleteStatusList(t *testing.T) {
	for name, c := range map[string]struct {
		change map[string]any
		ours   bool
	}{
		"without a ref":    {map[string]any{"ref": "absent"}, true},
		"null as ref":      {map[string]any{"ref": nil}, true},
		"without a name":   {map[string]any{"name": "absent"}, false},
		"without a number": {map[string]any{"id": "absent"}, false},
		"null":             {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, forgelab.Options{})
			b.put(t, "", check(status.InProgress, ""))
			had := b.StatusesFor(testProject, b.head.SHA)[0]
			b.listed(t, forgelab.RouteStatusList, map[string]any{
				"id": had.ID, "pipeline_id": had.PipelineID, "ref": had.Ref, "name": had.Name, "status": had.State,
				"description": had.Description, "target_url": had.TargetURL, "sha": had.SHA,
			}, c.change)
			_, err := b.client.Put(t.Context(), b.head, "", check(status.Completed, status.Success), false)
			if c.ours != (err == nil) || err != nil && !fault.Is(err, fault.Transient) {
				t.Errorf("%v, want it adopted: %t", err, c.ours)
			}
			if got := b.StatusesFor(testProject, b.head.SHA); len(got) != 1 {
				t.Errorf("%d statuses: %+v", len(got), got)
			}
		})
	}
}

// The same for the notes of a fork's merge request.
func TestPutRetriesIncompleteNoteList(t *testing.T) {
	for name, c := range map[string]struct {
		route  string
		change map[string]any
	}{
		"no author":           {forgelab.RouteNoteList, map[string]any{"author": nil}},
		"no number":           {forgelab.RouteNoteList, map[string]any{"id": "absent"}},
		"null":                {forgelab.RouteNoteList, nil},
		"who asks is unknown": {forgelab.RouteUser, map[string]any{"id": "absent"}},
	} {
		t.Run(name, func(t *testing.T) {
			b, iid := forked(t, forgelab.Public, "")
			b.put(t, "", check(status.InProgress, ""))
			had := b.ours(iid)[0]
			if c.route == forgelab.RouteUser {
				b.Inject(forgelab.Fault{Route: c.route, Count: 1, Do: forge.Answer(http.StatusOK, nil, `{"username":"x"}`)})
			} else {
				b.listed(t, c.route, map[string]any{"id": had.ID, "body": had.Body, "author": map[string]any{"id": 1}}, c.change)
			}
			_, err := b.client.Put(t.Context(), b.head, "", check(status.Completed, status.Success), false)
			if !fault.Is(err, fault.Transient) {
				t.Errorf("%v, want a Transient fault", err)
			}
			if got := b.ours(iid); len(got) != 1 {
				t.Errorf("%d notes: %+v", len(got), got)
			}
		})
	}
}
