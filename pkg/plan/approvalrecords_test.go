// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// updated is GitLab's update of a merge request from a branch of the project, a push if it replaces
// a commit.
func updated(before string) plan.Input {
	in := forked()
	in.Event.Spec.PullRequest.HeadProjectID = in.Event.Spec.Project.ID
	in.Event.Spec.EventType, in.Event.Spec.Action, in.Event.Spec.Before = "Merge Request", "update", before
	return in
}

// An untrusted user's command reads no records; neither does a pull request that is allowed by
// itself and was just opened.
func TestRecordsAreReadOnlyIfNeeded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in      plan.Input
		writers string
		asked   int
	}{
		"an untrusted user's command": {saying("eve"), "", 0},
		"a writer's pull request, opened": {
			func() plan.Input { in := forked(); in.Event.Spec.Action = "opened"; return in }(), "author", 0,
		},
		"a writer's pull request, pushed": {
			func() plan.Input { in := forked(); in.Event.Spec.Action = "synchronize"; return in }(), "author", 1,
		},
		"a push":                        {push(), "", 0},
		"a branch's, at GitLab, pushed": {updated("1111111111111111111111111111111111111111"), "author", 0},
		"a branch's, at GitLab, ready":  {updated(""), "author", 1}, // an earlier policy may have kept it waiting
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &env{writers: c.writers, said: "/ok-to-test", moved: sha}
			sources := w.sources()
			sources.Records = func(context.Context) ([]history.Record, error) {
				w.ask("records")
				return []history.Record{onRecord("pull-1", sha, 1, v1alpha1.DispositionPending)}, nil
			}
			made, err := plan.Make(t.Context(), c.in, sources)
			if err != nil || w.count("records") != c.asked || made.EndsPending != (c.asked > 0) || made.Approval != nil {
				t.Errorf("%v, %+v, asked %v", err, made, w.asked)
			}
		})
	}
	w := &env{writers: "member", said: "/ok-to-test", moved: sha}
	sources := w.sources()
	sources.Records = func(context.Context) ([]history.Record, error) { return nil, down() }
	if made, err := plan.Make(t.Context(), saying("member"), sources); err == nil || made.Disposition != "" {
		t.Errorf("%v, %+v: what is not known is retried", err, made)
	}
}

// Open decisions of an approved commit are decided under the same approval.
func TestApprovalStaysForOpenDecisions(t *testing.T) {
	t.Parallel()
	in := saying("member")
	given := &v1alpha1.Approval{By: "member", Event: "comment-2", BaseRef: "main", HeadProjectID: 99}
	in.Earlier = &plan.Earlier{Commits: plan.Commits{HeadSHA: sha, DefinitionSHA: sha, Approval: given, EndsPending: true}}
	w := &env{
		files: []git.File{pipeline("a", `on-cel-expression: 'event_type != ""'`)}, said: "/ok-to-test", moved: laterSHA,
	}
	made := w.make(t, in)
	if made.Approval != given || !made.EndsPending || made.HeadSHA != sha || len(made.Runs) != 1 ||
		!strings.Contains(made.Runs[0].Note, "member has approved") {
		t.Errorf("%+v", made)
	}
}
