// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"strings"
	"testing"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/store/history"
)

// S27 with a policy: a re-run always needs write access. On a pull request it starts what /retest
// does, so the user must also be listed in ok_to_test. A policy does not apply to pushes.
func TestPolicyTreatsRerunAsRetest(t *testing.T) {
	t.Parallel()
	pull, pushed := map[int64][]history.Record{4: {ran(ofPull(4), "pull-1", "a=Failed")}},
		map[int64][]history.Record{0: {ran(push(), "push-1", "a=Failed")}}
	waits := ran(ofPull(4), "pull-1", "")
	waits.Event.Status.Disposition = v1alpha1.DispositionPending
	for name, c := range map[string]struct {
		byNumber map[int64][]history.Record
		writers  string
		testers  []string
		why      string // "" runs
	}{
		"a writer who is listed":           {pull, "presser", []string{"testers"}, ""},
		"a writer who is not":              {pull, "presser", []string{"others"}, "in no team"},
		"a writer, while nobody is listed": {pull, "presser", nil, "names no team for such a comment"},
		"somebody listed who cannot write": {pull, "", []string{"testers"}, "has no write access"},
		"a writer who is not, of what waits for approval": {
			map[int64][]history.Record{4: {waits}}, "presser", []string{"others"}, "in no team",
		},
		"a writer who is not, of a push":              {pushed, "presser", []string{"others"}, ""},
		"a writer, of a push, while nobody is listed": {pushed, "presser", nil, ""},
		"somebody listed who cannot write, of a push": {pushed, "", []string{"testers"}, "has no write access"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &past{env: &env{writers: c.writers, files: []git.File{pipeline("a")}}, byNumber: c.byNumber}
			w.teams = map[string]string{"testers": "presser", "others": "somebody", "developers": "author"}
			w.true = described(sha, 5, "author")
			rerun := v1alpha1.Rerun{All: true}
			if c.byNumber[0] == nil {
				rerun.Pulls = []int64{4}
			}
			in := pressed(rerun)
			in.Repository.Spec.Settings = &pacv1alpha1.Settings{
				Policy: &pacv1alpha1.Policy{PullRequest: []string{"developers"}, OkToTest: c.testers},
			}
			made, err := w.make(t, in)
			why := made.Message
			var end *plan.IgnoredError
			switch {
			case errors.As(err, &end):
				why = end.Why.Message
			case err != nil:
				t.Fatal(err)
			}
			if runs := len(made.Runs) > 0; runs != (c.why == "") || !strings.Contains(why, c.why) {
				t.Errorf("runs: %t, %q, want %q", runs, why, c.why)
			}
		})
	}
}
