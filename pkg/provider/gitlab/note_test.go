// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/status"
	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// A note is of the merge request, whatever commit a run is of. What is told of a commit that was replaced must not hide
// the verdict on the one that took its place, in whichever order the runs report.
func TestTheNoteIsOfTheMergeRequestsHead(t *testing.T) {
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
			head.head.SHA = old.GitLab.Commit(testFork, "main", forgelab.Change{Message: "again", Author: "stranger", Files: map[string]string{"x": "zz"}})
			c.report(t, old, head)
			notes := head.ours(iid)
			if len(notes) != 1 || !strings.Contains(notes[0].Body, c.want) {
				t.Errorf("%+v, want one note with %q", notes, c.want)
			}
		})
	}
}
