// SPDX-License-Identifier: Apache-2.0

package match

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const group = "pipelinesascode.tekton.dev/"

// annotated writes annotations without their common prefix.
func annotated(pairs ...string) map[string]string {
	annotations := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		annotations[group+pairs[i]] = pairs[i+1]
	}
	return annotations
}

func push(ref string) Event {
	return Event{Trigger: v1alpha1.TriggerPush, EventType: "push", BaseRef: ref, HeadRef: ref}
}

func pull(base string) Event {
	return Event{Trigger: v1alpha1.TriggerPullRequest, EventType: "pull_request", BaseRef: base, HeadRef: "topic"}
}

func TestSelect(t *testing.T) {
	tests := map[string]struct {
		event       Event
		annotations map[string]string
		reason      string
	}{
		"a push to a listed branch is selected": {
			push("refs/heads/main"), annotated("on-event", "[push]", "on-target-branch", "[main]"),
			"selected: on-event includes push; on-target-branch [main] matches main",
		},
		"a pull request onto a listed branch is selected": {
			pull("main"), annotated("on-event", "[push, pull_request]", "on-target-branch", "[release-*, main]"),
			"selected: on-event includes pull_request; on-target-branch [main] matches main",
		},
		"one word needs no brackets": {
			pull("main"), annotated("on-event", "pull_request", "on-target-branch", " main "),
			"selected: on-event includes pull_request; on-target-branch [main] matches main",
		},
		"a tag that is selected is named in full, with the pattern that matches alone": {
			push("refs/tags/v1"), annotated("on-event", "[push]", "on-target-branch", "[main, refs/tags/v*]"),
			"selected: on-event includes push; on-target-branch [refs/tags/v*] matches refs/tags/v1",
		},
		"all clauses together have one bound": {
			pull(strings.Repeat("x", 1024)), annotated("on-event", "pull_request", "on-target-branch", "x*"),
			"selected: on-event includes pull_request; on-target-branch [x*] matches " + strings.Repeat("x", 194) + "…",
		},
		"a branch that no pattern matches is named without its prefix": {
			push("refs/heads/release-1"), annotated("on-event", "[push]", "on-target-branch", "[main]"),
			"on-target-branch [main] does not match release-1",
		},
		"a tag that no pattern matches is named in full": {
			push("refs/tags/v1"), annotated("on-event", "[push]", "on-target-branch", "[main,v1]"),
			"on-target-branch [main, v1] does not match refs/tags/v1",
		},
		"an event that is not listed is named": {
			pull("main"), annotated("on-event", "[push]", "on-target-branch", "[main]"),
			"on-event [push] does not include pull_request",
		},
		"events are compared whole": {
			push("refs/heads/main"), annotated("on-event", "[pushes, pu*]", "on-target-branch", "[main]"),
			"on-event [pushes, pu*] does not include push; no event is called pushes. Did you mean push?",
		},
		"a pipeline without annotations is not for events": {
			push("refs/heads/main"), nil, "no annotation on-event",
		},
		"on-event alone selects nothing": {
			push("refs/heads/main"), annotated("on-event", "[push]"),
			"no annotation on-target-branch",
		},
		"on-target-branch alone selects nothing": {
			push("refs/heads/main"), annotated("on-target-branch", "[main]"),
			"no annotation on-event",
		},
		"settings that do not select are carried and change nothing": {
			push("refs/heads/main"),
			annotated("on-event", "push", "on-target-branch", "main", "max-keep-runs", "5", "cancel-in-progress", "true"),
			"selected: on-event includes push; on-target-branch [main] matches main",
		},
		"annotations of others change nothing": {
			push("refs/heads/main"),
			map[string]string{
				group + "on-event": "push", group + "on-target-branch": "main", "example.com/on-cel-expression": "x",
			},
			"selected: on-event includes push; on-target-branch [main] matches main",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Select(tt.event, Pipeline{Name: "build", Annotations: tt.annotations})
			if err != nil {
				t.Fatal(err)
			}
			if want := (Selection{Selected: strings.HasPrefix(tt.reason, Selected), Reason: tt.reason}); !cmp.Equal(got, want) {
				t.Errorf("Select = %+v, want %+v", got, want)
			}
		})
	}
}

func TestSelectRefusesWhatIsNotWrittenAsAsked(t *testing.T) {
	tests := map[string]struct {
		annotations map[string]string
		message     string
	}{
		"an empty list of events": {
			annotated("on-event", "[]", "on-target-branch", "[main]"),
			"pipeline build: annotation pipelinesascode.tekton.dev/on-event has an empty value: name at least one entry, or remove it",
		},
		"an empty value": {
			annotated("on-event", "", "on-target-branch", "[main]"),
			"pipeline build: annotation pipelinesascode.tekton.dev/on-event has an empty value: name at least one entry, or remove it",
		},
		"words without brackets": {
			annotated("on-event", "push pull_request", "on-target-branch", "[main]"),
			`pipeline build: annotation pipelinesascode.tekton.dev/on-event has the value "push pull_request", which is in the wrong format: ` +
				`write one word, or a list like [main, release-*]`,
		},
		"a glob that does not compile": {
			annotated("on-event", "push", "on-target-branch", "[main{]"),
			`pipeline build: annotation pipelinesascode.tekton.dev/on-target-branch: the pattern "main{" is not a glob: ` +
				"unclosed `{`",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Select(push("refs/heads/x"), Pipeline{Name: "build", Annotations: tt.annotations})
			if got.Selected || !fault.Is(err, fault.Invalid) {
				t.Fatalf("Select = %+v, %v, want an Invalid fault", got, err)
			}
			if err.Error() != tt.message {
				t.Errorf("message\n%s\nwant\n%s", err, tt.message)
			}
		})
	}
}

func TestABadPatternOfAnEventThatIsNotListedIsNotReported(t *testing.T) {
	annotations := annotated("on-event", "push", "on-target-branch", "[{]")
	got, err := Select(pull("main"), Pipeline{Annotations: annotations})
	if got.Selected || err != nil || got.Reason != "on-event [push] does not include pull_request" {
		t.Errorf("Select = %+v, %v", got, err)
	}
}
