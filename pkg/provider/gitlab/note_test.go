// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"slices"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/status"
	"github.com/plumbline-ci/plumbline/test/forge"
	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// A note belongs to the merge request, whatever commit a run is of. A report about a replaced
// commit must not hide the verdict on its successor, in any order of the reports.
func TestNoteIsOfCurrentHead(t *testing.T) {
	named := func(run string, c status.Check) status.Check {
		c.ExternalID, c.Title = run, run+" "+c.Title
		return c
	}
	cases := []struct {
		name string
		// The run of the commit that was replaced is old, that of the head new.
		report func(t *testing.T, old, head bench)
		want   string
	}{
		{"the commit before reports for the first time after the head has", func(t *testing.T, old, head bench) {
			id := head.put(t, "", named("new", check(status.InProgress, "")))
			old.put(t, "", named("old", check(status.Completed, status.Success)))
			head.put(t, id, named("new", check(status.Completed, status.Failure)))
		}, "new Title of completedfailure"},
		{"it lost its id, and the head has concluded", func(t *testing.T, old, head bench) {
			old.put(t, "", named("old", check(status.InProgress, "")))
			head.put(t, "", named("new", check(status.Completed, status.Failure)))
			old.put(t, "", named("old", check(status.Completed, status.Success)))
		}, "new Title of completedfailure"},
		{"somebody deleted the note, and the commit before wrote it anew", func(t *testing.T, old, head bench) {
			old.put(t, "", named("old", check(status.Completed, status.Success)))
			head.put(t, notePrefix+"99", named("new", check(status.Completed, status.Failure)))
		}, "new Title of completedfailure"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			old, iid := forked(t, forgelab.Private, "")
			head := old
			head.head.SHA = old.GitLab.Commit(testFork, "main",
				forgelab.Change{Message: "again", Author: "stranger", Files: map[string]string{"x": "zz"}})
			c.report(t, old, head)
			notes := head.ours(iid)
			if len(notes) != 1 || !strings.Contains(notes[0].Body, c.want) {
				t.Errorf("%+v, want one note with %q", notes, c.want)
			}
		})
	}
}

// A process that was stopped may post its note after another one has looked for it and posted its
// own: the older note is kept and correct, whichever process knew about it. Notes of other users
// are not changed.
func TestLateNoteIsDeleted(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{true, false} {
		b, iid := forked(t, forgelab.Private, "")
		first := b.put(t, "", check(status.InProgress, ""))
		late := b.ours(iid)[0].Body
		b.AddNote(testProject, iid, "stranger", late)
		for range 2 {
			b.AddNote(testProject, iid, b.token.User.Username, late)
		}
		id := first
		if !known {
			id = ""
		}
		b.Inject(forgelab.Fault{Route: forgelab.RouteNoteDelete, Count: 1, Do: forge.ServerError502HTML()})
		b.Inject(forgelab.Fault{Route: forgelab.RouteNoteDelete, Count: 1, Do: forge.ApplyThenDrop()})
		ended := check(status.Completed, status.Success)
		for range 2 {
			if again, err := b.client.Put(t.Context(), b.head, id, ended, false); again != first || err == nil {
				t.Errorf("known %t: a duplicate that cannot be deleted: %q, %v, want %s and an error", known, again, err, first)
			}
		}
		if again := b.put(t, id, ended); again != first {
			t.Errorf("known %t: the note is %s, want %s", known, again, first)
		}
		if notes := b.ours(iid); len(notes) != 1 || !strings.Contains(notes[0].Body, "Title of completedsuccess") {
			t.Errorf("known %t: %+v, want one note with the verdict", known, notes)
		}
		if !slices.ContainsFunc(b.Notes(testProject, iid),
			func(n forgelab.Note) bool { return n.Author == "stranger" && n.Body == late }) {
			t.Errorf("known %t: somebody else's note was deleted", known)
		}
	}
}
