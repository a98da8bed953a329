// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/runqueue"
)

// What waits for a slot says its place and which runs have the slots, each with a link where there
// is a console. A name is no Markdown.
func TestWhoHasTheSlotsIsLinked(t *testing.T) {
	other := func(name string) string { return "https://console.example/ci/" + name }
	for name, test := range map[string]struct {
		slots []string
		links Links
		want  string
	}{
		"no console": {[]string{"a", "b"}, Links{}, "runs at most 2 PipelineRuns at a time (concurrency_limit). Running now: a, b. " + actNone},
		"a console": {[]string{"a", "b"}, Links{Other: other},
			"(concurrency_limit). Running now: [a](https://console.example/ci/a), [b](https://console.example/ci/b). " + actNone},
		"many": {[]string{"a", "b", "c", "d", "e", "f", "g"}, Links{Other: other},
			"[d](https://console.example/ci/d), [e](https://console.example/ci/e) and 2 more. " + actNone},
		"no runs": {nil, Links{Other: other}, "Queued since 03:04 UTC on 2 January: position 1 in the queue. Repository ci/app runs at most 2 PipelineRuns at a time (concurrency_limit). " + actNone},
		"a name":  {[]string{"a](x)"}, Links{Other: other}, `Running now: [a\](x)](https://console.example/ci/a]%28x%29). ` + actNone},
	} {
		var granted []pacv1alpha1.Slot
		for _, run := range test.slots {
			granted = append(granted, pacv1alpha1.Slot{Run: run})
		}
		says := runqueue.Says("", runqueue.Waiting{Repository: "ci/app", Limit: 2, Place: 1}, granted)
		got := Desired(Input{Application: "CI", Event: event(v1alpha1.DispositionRuns), Runs: []RunState{
			{Run: planned(), Links: test.links, Wait: waitFor("Throttled", fault.ReasonConcurrencyLimit, says)},
		}})[0]
		if got.State != Queued || got.Title != "Queued since 03:04 UTC on 2 January: position 1" ||
			!strings.HasSuffix(got.Text, test.want) {
			t.Errorf("%s: %s %q %s", name, got.State, got.Title, got.Text)
		}
	}
}
