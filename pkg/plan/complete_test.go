// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/plan"
)

// S11: a service that does not sign is asked for the event before permissions are read.
func TestServiceOverridesDelivery(t *testing.T) {
	t.Parallel()
	w := &env{files: []git.File{pipeline("a", `on-cel-expression: "true"`)}, writers: "author",
		true: func(s *v1alpha1.GitEventSpec) {
			s.PullRequest.Author, s.Actor = "stranger", "author"
		}}
	made := w.make(t, forked())
	if made.Disposition != v1alpha1.DispositionPending || made.Spec.PullRequest.Author != "stranger" ||
		w.count("access of author") != 0 {
		t.Errorf("%+v, asked %v: want the author of the Git service", made, w.asked)
	}
	w.completeErr = down()
	if made, err := plan.Make(t.Context(), forked(), w.sources()); err == nil || made.Disposition != "" {
		t.Errorf("%+v, %v: want an error while it does not say", made, err)
	}
}

// S11, S16: a comment that was edited after its delivery starts nothing.
func TestEditedCommentStartsNothing(t *testing.T) {
	t.Parallel()
	for noted, want := range map[string]bool{"/deploy": true, "/deploy prod": false, "": true} { // "" is not asked for
		w := &env{files: []git.File{pipeline("a", "on-comment: ^/deploy")}, writers: "member author", said: "/deploy",
			noted: noted, moved: sha}
		made, err := plan.Make(t.Context(), commented(), w.sources())
		var over *plan.IgnoredError
		if want && (err != nil || len(created(made)) != 1) ||
			!want && (!errors.As(err, &over) || over.Why.Reason != "CommentEdited") {
			t.Errorf("%q: %+v, %v", noted, made, err)
		}
	}
}
