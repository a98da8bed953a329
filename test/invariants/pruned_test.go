// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
)

// Each run that is deleted too early is found.
func TestHistoryFindsEarlyPruning(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ what, want, script string }{
		{"the older one is deleted when it is reported", "", "ends old new; accepts old; deletes old"},
		{"Tekton has ended it once more after its event noted the end", "", "ends old new old; accepts old; deletes old"},
		{"its result is accepted later", "has not accepted its result before",
			"ends old new; deletes old; later; accepts old"},
		{"its result was sent and not accepted", "has not accepted its result before",
			"ends old new; sends old; deletes old"},
		{"it is not over", "is not over", "runs old; deletes old"},
		{"nothing newer is kept", "of its pipeline 0 are kept", "ends older old; deletes old"},
		{"all are to be kept", "all of its pipeline are to be kept", "keeps old; deletes old"},
	} {
		p, e := newTape(t), &Evidence{}
		write := func(applied bool) func(words ...string) {
			return func(words ...string) {
				e.Writes = append(e.Writes, Write{ExternalID: words[0], Conclusion: "success", Applied: applied, At: p.at})
			}
		}
		verbs{
			"runs": p.runs, "ends": p.ends, "deletes": p.deletes, "accepts": write(true), "sends": write(false),
			"later": func(...string) { p.at = p.at.Add(time.Second) },
			"keeps": func(words ...string) {
				run := p.made(words[0], corev1.ConditionTrue)
				run.Annotations[pipelinesascode.MaxKeepRuns] = "abc"
				p.tell(theRuns, run.Name, run)
			},
		}.play(t, c.script)
		e.Remember(p.Pruned())
		judged(t, c.what, c.want, e.Early(p.Pruned()))
		if len(e.Made()) != 1 {
			t.Errorf("%s: %d PipelineRuns are remembered, want the deleted one", c.what, len(e.Made()))
		}
	}
}

// A mark that a PipelineRun is reported stays known, whatever Tekton writes over it.
func TestReportMarkIsRemembered(t *testing.T) {
	p := newTape(t)
	marked := p.made("a", corev1.ConditionTrue)
	marked.Labels[pipelinesascode.State] = pipelinesascode.StateCompleted
	p.tell(theRuns, "a", marked)
	p.ends("a", "b")
	if all := p.Marked(); len(all) != 1 || !all["uid-of-a"] {
		t.Errorf("marked are %v, want a", all)
	}
}
