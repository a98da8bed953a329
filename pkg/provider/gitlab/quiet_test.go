// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/status"
	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// A Repository that wants no comments gets none, also where there is no other place for the result.
// A note that exists already gets the conclusion.
func TestPutWritesNoNoteIfCommentsAreDisabled(t *testing.T) {
	b, iid := forked(t, forgelab.Private, "")
	quiet, err := New(Options{}).Connect(t.Context(), b.URL(), b.head.Project,
		provider.Credentials{Token: b.token.Value, Reach: loopback(), Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []status.Check{check(status.InProgress, ""), check(status.Completed, status.Failure)} {
		if id, err := quiet.Put(t.Context(), b.head, "", c, false); err != nil || id != "" {
			t.Errorf("Put %s: id %q, %v", c.State, id, err)
		}
	}
	if notes := b.ours(iid); len(notes) != 0 {
		t.Fatalf("notes %+v", notes)
	}
	b.put(t, "", check(status.InProgress, ""))
	if _, err := quiet.Put(t.Context(), b.head, "", check(status.Completed, status.Failure), false); err != nil {
		t.Error(err) // its ID is not known
	}
	if notes := b.ours(iid); len(notes) != 1 || !strings.Contains(notes[0].Body, "Title of completedfailure") {
		t.Errorf("notes %+v", notes)
	}
}
