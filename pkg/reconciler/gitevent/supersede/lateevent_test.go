// SPDX-License-Identifier: Apache-2.0

package supersede

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// An event that is planned long after it happened asks Git before its run is created, and what was
// run for the head; an event that is planned at once makes no call. A pipeline that the head's
// event has not run is run.
func TestLateEventAsksGit(t *testing.T) {
	t.Parallel()
	ran := with(with(push("head", "b", "c", 0), adds("lint", false)), func(e *v1alpha1.GitEvent) { // as a settled one is
		e.Status.Phase, e.Status.Runs[0].Result = v1alpha1.PhaseSettled, &v1alpha1.Result{Outcome: v1alpha1.OutcomeSucceeded}
	})
	for name, test := range map[string]struct {
		late  time.Duration
		head  string
		after time.Duration
		past  *v1alpha1.GitEvent
		want  string // the pipelines that end, and of which commit, or that are held
		asked string
	}{
		"at once":                  {time.Second, "c", 0, ran, "", ""},
		"late, and still the head": {time.Minute, "b", 0, ran, "", "tip"},
		"late, and replaced":       {time.Minute, "c", time.Minute, ran, "[build] by c", "tip c"},
		"late, and the head has no such pipeline": {time.Minute, "c", time.Minute,
			with(push("head", "b", "c", 0), func(e *v1alpha1.GitEvent) { e.Status.Runs[0].Pipeline = "docs" }), "", "tip c"},
		"late, and the head's does not cancel": {time.Minute, "c", time.Minute, with(push("head", "b", "c", 0),
			func(e *v1alpha1.GitEvent) { e.Status.Runs[0].CancelInProgress = false }), "", "tip c"},
		"late, and the head's was refused": {time.Minute, "c", time.Minute,
			with(push("head", "b", "c", 0), func(e *v1alpha1.GitEvent) { e.Status.Runs[0].UID = "" }), "", "tip c"},
		"late, and that is another branch's event": {time.Minute, "c", time.Minute,
			with(push("head", "b", "c", 0), func(e *v1alpha1.GitEvent) { e.Spec.BaseRef = "refs/heads/x" }), "", "tip c"},
		"late, and the head is not on record": {time.Minute, "c", time.Minute, nil, "", "tip c"},
		"late, not confirmed":                 {time.Minute, "c", 0, ran, "held [build]", "tip"},
		"late, but it runs already":           {time.Minute, "there", time.Minute, ran, "", ""},
		"late, but it waits for a slot":       {time.Minute, "waits", time.Minute, ran, "", ""},
		"late, the branch is gone":            {time.Minute, "", time.Minute, ran, "", "tip"},
		"late, nobody can be asked":           {time.Minute, "!", time.Minute, ran, "held [build]", "tip"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			self, asked := with(push("self", "a", "b", 0), happened(-test.late)), ""
			if test.head != "there" {
				self.Status.Runs[0].UID = ""
			}
			if test.head == "waits" {
				waiting(self)
			}
			l := seriesOf(self, nil)
			v, err := l.findNewer(l.rivals(), asks{
				tip: func() (string, error) {
					asked = "tip"
					if test.head == "!" {
						return "", errors.New("502")
					}
					return test.head, nil
				},
				had: func(sha string) ([]*v1alpha1.GitEvent, error) {
					asked += " " + sha
					if test.past == nil {
						return nil, nil
					}
					return []*v1alpha1.GitEvent{test.past}, nil
				},
			}, start.Add(test.after))
			got := ""
			for _, n := range v.notes {
				got = fmt.Sprintf("%v by %s", n.names, n.newest)
			}
			if len(v.held) > 0 {
				got = fmt.Sprintf("held %v", v.held)
			}
			if got != test.want || asked != test.asked || (err != nil) != strings.HasPrefix(test.want, "held") ||
				!slices.Equal(l.contested(nil), l.late()) {
				t.Errorf("%q, asked %q, error %v; want %q, %q", got, asked, err, test.want, test.asked)
			}
		})
	}
}
