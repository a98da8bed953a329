// SPDX-License-Identifier: Apache-2.0

package match

import (
	"maps"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/git"
)

// Quotes within an annotation's value are part of its entries, as in Pipelines-as-Code. The reason
// says so.
func TestQuotedEntriesSayThatTheQuotesCount(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ annotation, value, write string }{
		"an event":                 {"on-event", "['push']", "[push]"},
		"events":                   {"on-event", "['push', 'pull_request']", "[push, pull_request]"},
		"double quotes":            {"on-event", `["push"]`, "[push]"},
		"back quotes":              {"on-event", "[`push`]", "[push]"},
		"quotes of a word program": {"on-event", "[“push”, ‘pull_request’]", "[push, pull_request]"},
		"a word":                   {"on-event", "'push'", "[push]"},
		"some of the entries":      {"on-event", "[pull_request, 'push']", "[pull_request, push]"},
		"a quote around a list":    {"on-event", "['pull_request, push']", "[pull_request, push]"},
		"a word with a comma":      {"on-event", "'push','pull_request'", "[push, pull_request]"},
		"a branch":                 {"on-target-branch", "['main']", "[main]"},
		"a glob":                   {"on-target-branch", `["ma*"]`, "[ma*]"},
		"a comma within an entry":  {"on-target-branch", `["{main&#44;next}"]`, "[{main&#44;next}]"},
		"a path":                   {"on-path-change", "['docs/**', src/**]", "[docs/**, src/**]"},
		"an ignored path":          {"on-path-change-ignore", "['docs/**']", "[docs/**]"},
		"a label":                  {"on-label", "['bug']", "[bug]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			event := push("refs/heads/main")
			event.Labels, event.Changed = []string{"bug"}, ChangesOf(git.Changes{Added: []string{"docs/a.md"}})
			written := annotated("on-event", "push", "on-target-branch", "main")
			maps.Copy(written, annotated(tt.annotation, tt.value))
			got, err := Select(event, Pipeline{Annotations: written})
			want := "; the quotes within " + tt.annotation + " are part of its entries: write " + tt.write
			if ignores := tt.annotation == "on-path-change-ignore"; err != nil || got.Selected != ignores ||
				!strings.HasSuffix(got.Reason, want) {
				t.Errorf("Select = %+v, %v, want a reason that ends with %q", got, err, want)
			}
		})
	}
	for value, want := range map[string]string{
		"[pull_request]": "on-event [pull_request] does not include push",
		"[pull'request]": "on-event [pull'request] does not include push; no event is called pull'request. " +
			"Did you mean pull_request?",
	} {
		if got, err := Select(push("refs/heads/main"),
			Pipeline{Annotations: annotated("on-event", value, "on-target-branch", "main")}); err != nil || got.Reason != want {
			t.Errorf("%s: %+v, %v", value, got, err)
		}
	}
}

func TestAQuotedEventSaysSoToACommandThatNamesThePipeline(t *testing.T) {
	t.Parallel()
	got, err := SelectNamed(push("refs/heads/main"),
		Pipeline{Annotations: annotated("on-event", "['push']", "on-target-branch", "main")})
	if err != nil || got.Selected || !strings.Contains(got.Reason, "write [push]") {
		t.Errorf("SelectNamed = %+v, %v", got, err)
	}
}
