// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
)

// The branch of a merged pull request is set back, and an hour later the same commit is pushed
// again on the same one: nothing else runs that push.
func TestTheSamePushAnHourLaterIsNotThatOfAClosedPullRequest(t *testing.T) {
	t.Parallel()
	moved := strings.Repeat("b", 40)
	for at, want := range map[int]int{2: 0, 3600: 1} { // seconds after the pull request's event
		in := staging()
		in.Event.Spec.Before, in.Event.Spec.HappenedAt, in.Event.Spec.ReceivedAt = moved, second(at), *second(at)
		event := pulled4(v1alpha1.DispositionRuns, func(e *v1alpha1.GitEvent) {
			e.Spec.Before, e.Spec.HappenedAt = moved, second(0)
		})
		merged := ownPull(func(p *git.Pull) { p.Open = false })
		w := &env{files: []git.File{both("hello")}, pulls: []git.Pull{merged}}
		made := (&pair{env: w, now: at}).knows(event).make(t, in)
		if len(created(made)) != want {
			t.Errorf("after %d s: runs %v (%v), want %d", at, created(made), reasons(made), want)
		}
	}
}
