// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"errors"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/plan"
)

// S17, S7: an author who may only cancel is answered if that ends a run, and costs no look at the pull request if there is nothing to end.
// Everybody else who may cancel is answered in any case.
func TestWhoseCancelIsAnswered(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		said, writers, sender string
		unknown               bool
		something, running    bool
		command, reason       string
		asks                  bool
	}{
		"the author's, of nothing":                  {said: "/cancel", sender: "author", reason: "NothingToCancel"},
		"the author's, of nothing by that name":     {said: "/cancel build", sender: "author", reason: "NothingToCancel"},
		"the author's, malformed":                   {said: "/cancel\n/test", sender: "author", something: true, running: true, reason: "ContradictoryCommands"},
		"the author's, of what may start something": {said: "/cancel", sender: "author", something: true, reason: "CancelRequested", asks: true},
		"the author's, of a run":                    {said: "/cancel", sender: "author", something: true, running: true, command: "/cancel", reason: "CancelRequested", asks: true},
		"the author's, of what nobody knows":        {said: "/cancel", sender: "author", unknown: true, reason: "CancelRequested", asks: true},
		"an author's who may write, of nothing":     {said: "/cancel", sender: "author", writers: "author", command: "/cancel", reason: "NothingToCancel", asks: true},
		"a writer's, of nothing":                    {said: "/cancel", sender: "member", writers: "member", command: "/cancel", reason: "NothingToCancel", asks: true},
		"a writer's, of a run":                      {said: "/cancel", sender: "member", writers: "member", something: true, running: true, command: "/cancel", reason: "CancelRequested", asks: true},
		"a writer's, malformed":                     {said: "/cancel\n/test", sender: "member", writers: "member", command: "/cancel", reason: "ContradictoryCommands", asks: true},
		"somebody else's":                           {said: "/cancel", sender: "stranger", something: true, running: true, reason: "NotApproved"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := written(test.said)
			w.writers = test.writers
			sources := w.sources()
			if !test.unknown {
				sources.Cancels = func(context.Context, *v1alpha1.GitEventSpec, *v1alpha1.Cancellation) (something, running bool, err error) {
					return test.something, test.running, nil
				}
			}
			in := happened(commented())
			in.Event.Spec.Sender = test.sender
			made, err := plan.Make(t.Context(), in, sources)
			if err != nil {
				t.Fatal(err)
			}
			if made.Command != test.command || made.Reason != test.reason || (w.count("complete") > 0) != test.asks {
				t.Errorf("answered %q, %s %s, asked %q", made.Command, made.Disposition, made.Reason, w.asked)
			}
			if made.Untrusted != (test.sender == "author" && test.writers == "") {
				t.Errorf("untrusted: %t", made.Untrusted)
			}
		})
	}
}

// While the API server does not say what there is to cancel nothing is decided.
func TestWhatThereIsToCancelMayNotBeKnown(t *testing.T) {
	t.Parallel()
	for _, sender := range []string{"author", "member"} {
		w := written("/cancel")
		w.writers = "member"
		sources := w.sources()
		sources.Cancels = func(context.Context, *v1alpha1.GitEventSpec, *v1alpha1.Cancellation) (something, running bool, err error) {
			return false, false, errors.New("no answer")
		}
		in := happened(commented())
		in.Event.Spec.Sender = sender
		if made, err := plan.Make(t.Context(), in, sources); err == nil {
			t.Errorf("%s: %s %s", sender, made.Disposition, made.Reason)
		}
	}
}
