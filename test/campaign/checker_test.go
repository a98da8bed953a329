// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/invariants"
)

// I-9 is about deliveries that were answered while receivers were replaced, and not about those that a kill right after that has cut off:
// of these GitHub says the second only.
func TestWhatFailsInARollingRestart(t *testing.T) {
	second := time.Now().Truncate(time.Second)
	c := &checker{stage: &stage{tally: newTally()}}
	c.stage.tally.rolled(second, second.Add(9800*time.Millisecond))
	for what, test := range map[string]struct {
		d      invariants.Delivery
		breaks bool
	}{
		"cut off in the middle":         {invariants.Delivery{At: second.Add(5 * time.Second), Took: time.Second}, true},
		"refused in the middle":         {invariants.Delivery{Code: 503, At: second.Add(5 * time.Second), Took: time.Second}, true},
		"answered in the middle":        {invariants.Delivery{Code: 202, At: second.Add(5 * time.Second), Took: time.Second}, false},
		"503 after a receiver's wait":   {invariants.Delivery{Code: 503, At: second.Add(5 * time.Second), Took: 4 * time.Second}, false},
		"cut off in the second it ends": {invariants.Delivery{At: second.Add(9 * time.Second), Took: time.Second}, false},
		"sent before it began":          {invariants.Delivery{At: second.Add(time.Second), Took: 2 * time.Second}, false},
	} {
		if broken := c.failed(&invariants.Evidence{Deliveries: []invariants.Delivery{test.d}}); len(broken) > 0 != test.breaks {
			t.Errorf("%s: %v", what, broken)
		}
	}
}

// I-10 has two sides: what is never patched is reported all the same, and what may be patched says in the end that it was.
func TestWhatIsReportedIsMarked(t *testing.T) {
	marked := map[string]string{pipelinesascode.State: pipelinesascode.StateCompleted}
	free, denied := "run-0", "run-1"
	for ; refused(free); free += "0" {
	}
	for ; !refused(denied); denied += "1" {
	}
	for what, test := range map[string]struct {
		name   string
		labels map[string]string
		result *v1alpha1.Result
		breaks bool
	}{
		"it is marked":                     {free, marked, &v1alpha1.Result{}, false},
		"it runs":                          {free, nil, nil, false},
		"its patches are refused":          {denied, nil, &v1alpha1.Result{}, false},
		"it is reported and nothing more":  {free, nil, &v1alpha1.Result{}, true},
		"it is marked as what has started": {free, map[string]string{pipelinesascode.State: pipelinesascode.StateStarted}, &v1alpha1.Result{}, true},
	} {
		e := &invariants.Evidence{
			Live:    []pipelinev1.PipelineRun{{ObjectMeta: metav1.ObjectMeta{Name: test.name, Labels: test.labels}}},
			Planned: map[string]v1alpha1.Run{test.name: {Name: test.name, Result: test.result}},
		}
		if broken := unmarked(e); len(broken) > 0 != test.breaks {
			t.Errorf("%s: %v", what, broken)
		}
	}
}
