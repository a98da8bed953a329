// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/git"
)

// GitHub's web form ends lines with CR and LF, the API with what the caller writes. Every reader
// sees a line feed.
func TestCommentLineBreaksBecomeLineFeeds(t *testing.T) {
	t.Parallel()
	const text = "please\n/deploy staging\nthanks\n"
	for name, lineBreak := range map[string]string{"LF": "\n", "CRLF": "\r\n", "CR": "\r"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := written(strings.ReplaceAll(text, "\n", lineBreak))
			w.files = []git.File{
				pipeline("line", `on-comment: "(?m)^/deploy staging$"`),
				pipeline("whole", `on-comment: "^please\n/deploy staging\nthanks$"`), pipeline("other", "on-comment: ^/deploy"),
				edited(pipeline("script", `on-comment: "(?m)^thanks$"`), `"true"`, `"{{ trigger_comment }}"`),
			}
			w.noted = text
			made := w.make(t, commented())
			if diff := cmp.Diff([]string{"line", "whole", "script"}, created(made)); diff != "" {
				t.Fatalf("%v: %s", reasons(made), diff)
			}
			if got := decoded(t, made.Runs[2]).Spec.PipelineSpec.Tasks[0].TaskSpec.Steps[0].Script; got != `please\n/deploy staging\nthanks\n` {
				t.Errorf("{{ trigger_comment }} is %q", got)
			}
			if made.Spec.Comment.Body != text {
				t.Errorf("the comment is %q", made.Spec.Comment.Body)
			}
		})
	}
}

// The delivery and the API may end lines differently: that is not an edit. A different text is.
func TestLineBreaksDoNotCountAsEdit(t *testing.T) {
	t.Parallel()
	w := written("/test build\r\n/test lint\r\n")
	w.noted = "/test build\n/test lint\n"
	if diff := cmp.Diff([]string{"build", "lint"}, created(w.make(t, commented()))); diff != "" {
		t.Error(diff)
	}
	w = written("/test build\n/test lint")
	w.noted = "/test build\r/test lint"
	if diff := cmp.Diff([]string{"build", "lint"}, created(w.make(t, commented()))); diff != "" {
		t.Error(diff)
	}
	w = said("/test\r\n\r\n> quoted\r\n/test released branch:release\r\n")
	if made := w.make(t, remarked()); made.Spec.EventType != "test-all-comment" ||
		strings.Contains(made.Spec.Comment.Body, "\r") {
		t.Errorf("a comment on a commit: %s, %q", made.Spec.EventType, made.Spec.Comment.Body)
	}
}
