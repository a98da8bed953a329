// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/test/forge"
	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// The heads of a merge request and their times are GitLab's own, in any order. Until it shows the
// event's head nothing is known.
func TestVersions(t *testing.T) {
	t.Parallel()
	a := newActing(t)
	first := a.event("open")
	if heads, err := a.client.Versions(t.Context(), first); err != nil || len(heads) != 1 || heads[0].SHA != first.SHA {
		t.Errorf("opened: %+v, %v", heads, err)
	}
	before := a.time()
	second := a.push("stranger")
	after := a.time()
	event := a.event("update")
	heads, err := a.client.Versions(t.Context(), event)
	if err != nil || len(heads) != 2 || heads[0].SHA != second || heads[1].SHA != first.SHA ||
		heads[0].Since.Before(before) || heads[0].Since.After(after) {
		t.Errorf("pushed: %+v, %v, want %s between %s and %s", heads, err, second, before, after)
	}
	if heads, err := a.client.Versions(t.Context(), first); heads != nil || fault.Of(err) == nil ||
		fault.Of(err).Reason != fault.ReasonNotConfirmed {
		t.Errorf("of a head that is not the newest: %+v, %v, want a wait", heads, err)
	}
	row := func(id, sha, at string) string {
		return `{"id":` + id + `,"head_commit_sha":"` + sha + `","created_at":` + at + `}`
	}
	const at = `"2026-05-01T00:00:00.926Z"`
	for answer, want := range map[string]bool{
		"[" + row("1", first.SHA, at) + "," + row("2", second, at) + "]": true,
		"[" + row("2", second, "null") + "]":                             false,
		"[" + row("2", "", at) + "]":                                     false,
		"[]":                                                             false,
		"null":                                                           false,
	} {
		a.Inject(forgelab.Fault{Route: forgelab.RouteMRVersions, Count: 1, Do: forge.Answer(200, nil, answer)})
		if heads, err := a.client.Versions(t.Context(), event); want != (err == nil) ||
			!want && !fault.Is(err, fault.Transient) || want && heads[0].SHA != second {
			t.Errorf("%s: %+v, %v", answer, heads, err)
		}
	}
}
