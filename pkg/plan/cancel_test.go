// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/plan"
)

// at is when the comment was written, or the pull request closed.
var at = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

func happened(in plan.Input) plan.Input {
	in.Event.Spec.HappenedAt, in.Event.Spec.ReceivedAt = &at, at
	return in
}

// S26: a user with write access cancels runs of any pull request, an author those of the own one.
// Nothing is read, started or shown on the commit.
func TestCancelCommand(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		said, writers, sender string
		want                  *v1alpha1.Cancellation
		reason                string
	}{
		"all": {"/cancel", "member", "member",
			&v1alpha1.Cancellation{By: "member", Why: "member requested it in a comment", At: at}, "CancelRequested"},
		"some": {"/cancel lint build", "member", "member", &v1alpha1.Cancellation{
			By: "member", Names: []string{"lint", "build"}, Why: "member requested it in a comment", At: at,
		}, "CancelRequested"},
		"the author's own": {"/cancel", "", "author",
			&v1alpha1.Cancellation{By: "author", Why: "author requested it in a comment", At: at}, "CancelRequested"},
		"an untrusted user":        {"/cancel", "author", "member", nil, "NotApproved"},
		"too many names":           {"/cancel " + many500(), "member", "member", nil, "TooManyNames"},
		"names that are too large": {"/cancel " + long(20), "member", "member", nil, "TooManyNames"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := written(test.said)
			w.writers = test.writers
			in := happened(commented())
			in.Event.Spec.Sender = test.sender
			made := w.make(t, in)
			if diff := cmp.Diff(test.want, made.Cancels); diff != "" || made.Reason != test.reason ||
				len(made.Runs)+len(made.Decisions) != 0 {
				t.Errorf("%s %s %q: %s", made.Disposition, made.Reason, made.Message, diff)
			}
			if want := map[bool]v1alpha1.Disposition{true: v1alpha1.DispositionCancels,
				false: v1alpha1.DispositionIgnored}[test.want != nil]; made.Disposition != want {
				t.Errorf("%s, want %s", made.Disposition, want)
			}
		})
	}
}

// long returns n different names of 240 bytes.
func long(n int) string {
	var names []string
	for i := range n {
		names = append(names, strings.Repeat(string(rune('a'+i)), 240))
	}
	return strings.Join(names, " ")
}

// Closing a pull request needs no permission here and reads no definitions.
func TestClosedPullRequestCancels(t *testing.T) {
	t.Parallel()
	in := happened(forked())
	in.Event.Spec.Action, in.Event.Spec.Actor = "closed", "stranger"
	made := (&env{files: several()}).make(t, in)
	want := &v1alpha1.Cancellation{By: "stranger", Why: "stranger closed the pull request", At: at}
	if diff := cmp.Diff(want, made.Cancels); diff != "" || made.Disposition != v1alpha1.DispositionCancels ||
		made.DefinitionSHA != "" || len(made.Runs) != 0 {
		t.Errorf("%s, definitions at %q, %d runs: %s", made.Disposition, made.DefinitionSHA, len(made.Runs), diff)
	}
}
