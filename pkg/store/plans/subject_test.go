// SPDX-License-Identifier: Apache-2.0

package plans_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
)

// What an event is about is written down once, beside its other labels, and its payload can still
// be read.
func TestSetSubjectWritesOnce(t *testing.T) {
	event := pushed("body")
	event.Labels = map[string]string{plumbline.SubjectLabel: "commit", "other": "stays"}
	w := newFixture(t, event)
	plan := w.store.Of(cached(event))
	for range 2 {
		if err := plan.SetSubject(t.Context(), "pull"); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"patch gitevents"}, w.calls()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{plumbline.SubjectLabel: "pull", "other": "stays"}, w.live().Labels); diff != "" {
		t.Error(diff)
	}
	if body, err := plan.Payload(t.Context()); string(body) != "body" || err != nil {
		t.Errorf("%q, %v", body, err)
	}
}
