// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"errors"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/plan"
)

// cancels is what there is to cancel: "", "something" or "a run".
func cancels(what string, err error) func(
	context.Context, *v1alpha1.GitEventSpec, *v1alpha1.Cancellation) (something, running bool, err error) {
	return func(context.Context, *v1alpha1.GitEventSpec, *v1alpha1.Cancellation) (something, running bool, _ error) {
		return what != "", what == "a run", err
	}
}

// An author who may only cancel gets a reply if that cancels a run; if there is nothing to cancel,
// the pull request is not read. Every other user who may cancel gets a reply in any case.
func TestCancelGetsReplyOnlyFromUsersWhoMay(t *testing.T) {
	t.Parallel()
	const nothing, requested, two = "NothingToCancel", "CancelRequested", "ContradictoryCommands"
	for name, test := range map[string]struct {
		said, sender, writers string
		there                 string // to cancel
		answered              bool
		reason                string
		asks                  bool // about the pull request
	}{
		"the author's, of nothing":          {"/cancel", "author", "", "", false, nothing, false},
		"the author's, of no such name":     {"/cancel build", "author", "", "", false, nothing, false},
		"the author's, malformed":           {"/cancel\n/test", "author", "", "a run", false, two, false},
		"the author's, of what may start":   {"/cancel", "author", "", "something", false, requested, true},
		"the author's, of a run":            {"/cancel", "author", "", "a run", true, requested, true},
		"an author's who may write":         {"/cancel", "author", "author", "", true, nothing, true},
		"a writer's, of nothing":            {"/cancel", "member", "member", "", true, nothing, true},
		"a writer's, of what may start":     {"/cancel", "member", "member", "something", true, requested, true},
		"a writer's, of a run":              {"/cancel", "member", "member", "a run", true, requested, true},
		"a writer's, malformed":             {"/cancel\n/test", "member", "member", "a run", true, two, true},
		"somebody else's":                   {"/cancel", "stranger", "", "a run", false, "NotApproved", false},
		"somebody else's, with the command": {"/test", "stranger", "", "a run", false, "NotApproved", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := written(test.said)
			w.writers = test.writers
			sources := w.sources()
			sources.Cancels = cancels(test.there, nil)
			in := happened(commented())
			in.Event.Spec.Sender = test.sender
			made, err := plan.Make(t.Context(), in, sources)
			if err != nil {
				t.Fatal(err)
			}
			if (made.Command == "/cancel") != test.answered || made.Reason != test.reason {
				t.Errorf("answered %q, %s %s", made.Command, made.Disposition, made.Reason)
			}
			if (w.count("complete") > 0) != test.asks {
				t.Errorf("asked %q", w.asked)
			}
			if made.Untrusted != (test.sender == "author" && test.writers == "") {
				t.Errorf("untrusted: %t", made.Untrusted)
			}
		})
	}
}

// Where it is not known what there is to cancel, the author may cancel, and gets no reply.
func TestCancelWithoutKnownRuns(t *testing.T) {
	t.Parallel()
	for _, writers := range []string{"", "author"} {
		w := written("/cancel")
		w.writers = writers
		in := happened(commented())
		in.Event.Spec.Sender = "author"
		if made := w.make(t, in); made.Command != "" || made.Reason != "CancelRequested" {
			t.Errorf("answered %q, %s %s", made.Command, made.Disposition, made.Reason)
		}
	}
}

// While the API server does not say what there is to cancel, nothing is decided.
func TestCancelWaitsForUnknownRuns(t *testing.T) {
	t.Parallel()
	for _, sender := range []string{"author", "member"} {
		w := written("/cancel")
		w.writers = "member"
		sources := w.sources()
		sources.Cancels = cancels("", errors.New("no answer"))
		in := happened(commented())
		in.Event.Spec.Sender = sender
		if made, err := plan.Make(t.Context(), in, sources); err == nil {
			t.Errorf("%s: %s %s", sender, made.Disposition, made.Reason)
		}
	}
}
