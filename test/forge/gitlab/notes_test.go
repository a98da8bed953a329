// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is done to a project has a later second than what was done before, however fast it comes.
func TestActionsHaveDistinctSeconds(t *testing.T) {
	w := newFixture(t, Options{})
	sha := w.Commit(app, "topic", Change{Files: map[string]string{"a": "1"}})
	w.OpenMergeRequest(NewMergeRequest{Target: app, SourceBranch: "topic"})
	last := ""
	for i, d := range []Delivery{
		w.MergeRequestDelivery(MergeRequestEvent{Project: app, IID: 1}),
		w.NoteDelivery(w.AddNote(app, 1, "bob", "hi")),
		w.NoteDelivery(w.AddCommitNote(app, sha, "bob", "hi")),
		w.NoteDelivery(w.AddNote(app, 1, "bob", "hi")),
	} {
		var e struct {
			Attributes struct {
				Updated string `json:"updated_at"`
			} `json:"object_attributes"`
		}
		err := json.Unmarshal(d.Body, &e)
		if err != nil || e.Attributes.Updated <= last {
			t.Errorf("delivery %d is of %s (%v), the one before of %s", i, e.Attributes.Updated, err, last)
		}
		last = e.Attributes.Updated
	}
}

func TestNotes(t *testing.T) {
	w := newFixture(t, Options{})
	w.Commit(app, "topic", Change{Files: map[string]string{"a": "1"}})
	w.OpenMergeRequest(NewMergeRequest{Target: app, SourceBranch: "topic"})
	const notes = at + "/merge_requests/1/notes"
	first := w.do("POST", notes, w.token, map[string]any{"body": "one"}).Object(t)
	w.Commit(app, "topic", Change{Files: map[string]string{"a": "2"}})
	theirs := w.AddNote(app, 1, "bob", "two")
	mine := notes + "/" + itoa(int64(first["id"].(float64)))
	if r := w.do("PUT", mine, w.token, map[string]any{"body": "one, edited"}); r.Status != 200 ||
		text(r.Object(t), "body") != "one, edited" {
		t.Errorf("an edit: %d %s", r.Status, r.Body)
	}
	list := func(query string) string {
		var out []string
		for _, n := range w.do("GET", notes+query, w.token, nil).List(t) {
			out = append(out, text(n, "body"))
		}
		return strings.Join(out, ", ")
	}
	for query, want := range map[string]string{
		"":                               "two, added 1 commits, one, edited",
		"?sort=asc":                      "one, edited, added 1 commits, two",
		"?per_page=1&page=3":             "one, edited",
		"?activity_filter=only_comments": "two, one, edited",
	} {
		if got := list(query); got != want {
			t.Errorf("%q: got %s, want %s", query, got, want)
		}
	}
	for name, tc := range map[string]struct {
		method, path string
		body         any
		want         string
	}{
		"another's note is not the bot's": {
			"PUT", notes + "/" + itoa(theirs), map[string]any{"body": "x"}, "403 403 Forbidden",
		},
		"nor may the bot delete it": {"DELETE", notes + "/" + itoa(theirs), nil, "403 403 Forbidden"},
		"an unknown note":           {"PUT", notes + "/7", map[string]any{"body": "x"}, "404 404 Not found"},
		"a note needs a body":       {"POST", notes, map[string]any{}, "400 body is missing"},
		"a blank note": {
			"POST", notes, map[string]any{"body": " \n"}, `400 400 Bad request - Note {:note=>["can't be blank"]}`,
		},
		"a note of a million and one": {"POST", notes, map[string]any{"body": strings.Repeat("é", maxNote+1)},
			`400 400 Bad request - Note {:note=>["is too long (maximum is 1000000 characters)"]}`},
		"a note of a million characters": {"POST", notes, map[string]any{"body": strings.Repeat("é", maxNote)}, "201"},
		"an unknown merge request": {
			"POST", at + "/merge_requests/9/notes", map[string]any{"body": "x"}, "404 404 MergeRequest Not Found",
		},
		"the bot deletes its own": {"DELETE", mine, nil, "204"},
	} {
		r := w.do(tc.method, tc.path, w.token, tc.body)
		if got := strings.TrimSpace(fmt.Sprint(r.Status, " ", r.said())); got != tc.want {
			t.Errorf("%s: got %.200s, want %s", name, got, tc.want)
		}
	}
	var left []string
	for _, n := range w.Notes(app, 1) {
		left = append(left, fmt.Sprintf("%s %.9s", n.Author, n.Body))
	}
	if diff := cmp.Diff([]string{"bob two", w.bot.Username + " ééééééééé"}, left); diff != "" {
		t.Errorf("notes left (-want +got):\n%s", diff)
	}
	var applied int
	for _, wr := range w.Writes() {
		if wr.MergeRequest == 1 && wr.Applied {
			applied++
		}
	}
	if applied != 4 {
		t.Errorf("applied writes of notes: %d, want 4", applied)
	}
}

// Where the discussion is locked only members write.
func TestNotesOfLockedDiscussion(t *testing.T) {
	w := newFixture(t, Options{})
	w.Commit(app, "topic", Change{Files: map[string]string{"a": "1"}})
	iid := w.OpenMergeRequest(NewMergeRequest{Target: app, SourceBranch: "topic"})
	w.LockMergeRequest(app, iid, "bob", true)
	if r := w.do("POST", at+"/merge_requests/1/notes", w.token, map[string]any{"body": "one"}); r.Status != 201 {
		t.Errorf("a member's note: %d %s", r.Status, r.Body)
	}
	w.SetVisibility(app, Public)
	w.SetMember(app, w.bot.Username, NoAccess)
	if r := w.do("POST", at+"/merge_requests/1/notes", w.token, map[string]any{"body": "one"}); r.Status != 403 {
		t.Errorf("somebody else's note: %d %s", r.Status, r.Body)
	}
}
