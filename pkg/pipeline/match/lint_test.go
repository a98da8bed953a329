// SPDX-License-Identifier: Apache-2.0

package match

import (
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
)

func TestLint(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		annotations map[string]string
		want        string // sentences, joined
	}{
		"all are right": {annotated("on-event", "[push, pull_request]", "on-target-branch", "[main]", "on-label", "x",
			"task", "git-clone", "task-1", "x", "pipeline", "y", "max-keep-runs", "3", "cancel-in-progress", "true",
			"target-namespace", "ns", "on-comment", "/x", "on-path-change", "a", "on-path-change-ignore", "b"), ""},
		"of Pipelines-as-Code and others": {map[string]string{
			pipelinesascode.State: "x", "example.com/on-events": "x", "plumbline.dev/infrastructure-retries": "0"}, ""},
		"a key": {annotated("on-events", "push"), "on-events does not exist. Did you mean on-event?"},
		"a key of ours": {map[string]string{"plumbline.dev/infrastructure-retry": "0"},
			"plumbline.dev/infrastructure-retry does not exist"},
		"a key like none": {annotated("timeout", "1h"), "timeout does not exist"},
		"a key of another program": {annotated("task-x", "y"),
			"task-x does not exist. Did you mean task?"},
		"an event": {annotated("on-event", "[push, pull-request]"),
			"no event is called pull-request. Did you mean pull_request?"},
		"an event like none": {annotated("on-event", "tag"),
			"no event is called tag (events: push, pull_request, merge_group, incoming)"},
		"what Pipelines-as-Code starts":  {annotated("on-event", "[incoming]"), ""},
		"a branch without an event":      {annotated("on-target-branch", "main"), "on-target-branch has no effect without on-event"},
		"a branch next to an expression": {annotated("on-target-branch", "main", "on-cel-expression", "true"), ""},
		"a branch that is no pattern": {annotated("on-event", "push", "on-target-branch", "[main, '{a']"),
			`on-target-branch: the pattern "'{a'" is not a glob: `},
		"a path that is no pattern": {annotated("on-path-change", "{a"),
			`on-path-change: the pattern "{a" is not a glob: `},
		"tags of a pull request": {annotated("on-event", "pull_request", "on-target-branch", "refs/tags/v*"),
			"on-target-branch lists tags only, and no pull request goes to a tag: a tag is a push"},
		"tags of a push": {annotated("on-event", "[push]", "on-target-branch", "refs/tags/v*"), ""},
		"labels of a push": {annotated("on-event", "[push]", "on-target-branch", "main", "on-label", "ready"),
			"on-label never matches: only pull requests have labels, and on-event is [push]"},
		"placeholders":        {annotated("on-event", "{{ x }}", "on-target-branch", "{{ y", "on-label", "ready"), ""},
		"what Select refuses": {annotated("on-event", "[]", "on-target-branch", "a b"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var says []string
			for _, finding := range Lint(tt.annotations) {
				says = append(says, finding.Says)
			}
			if got := strings.Join(says, "; "); !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// A pipeline that does not start because an annotation is misspelt says so where it says why.
func TestSelectSuggestsAnnotation(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		event       Event
		annotations map[string]string
		want        string
	}{
		"on-event": {push("refs/heads/main"), annotated("on-events", "push"),
			"no annotation on-event; on-events does not exist. Did you mean on-event?"},
		"on-target-branch": {push("refs/heads/main"), annotated("on-event", "push", "on-target-branches", "main"),
			"no annotation on-target-branch; on-target-branches does not exist. Did you mean on-target-branch?"},
		"an event": {push("refs/heads/main"), annotated("on-event", "psuh", "on-target-branch", "main"),
			"on-event [psuh] does not include push; no event is called psuh. Did you mean push?"},
		"on-comment": {Event{EventType: CommentEvent}, annotated("on-coment", "x"),
			"the event is a comment, and there is no annotation on-comment; on-coment does not exist. Did you mean on-comment?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := Select(tt.event, Pipeline{Annotations: tt.annotations}); err != nil || got.Reason != tt.want {
				t.Errorf("%q, %v, want %q", got.Reason, err, tt.want)
			}
		})
	}
}
