// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/test/invariants"
)

// Of the two events of a push to a pull request exactly one runs each pipeline.
func TestOneOfTwoEventsOfPushRuns(t *testing.T) {
	for what, test := range map[string]struct {
		push, own []string
		twice     bool
		none      bool
	}{
		"the pull request runs": {nil, []string{"run-0", "run-1"}, false, false},
		"the push runs":         {[]string{"run-0"}, nil, false, false},
		"each runs another one": {[]string{"run-0"}, []string{"run-1"}, false, false},
		"both run one":          {[]string{"run-0", "run-1"}, []string{"run-1"}, true, false},
		"one never ran":         {[]string{"never run-0"}, []string{"run-0"}, false, false},
		"neither runs anything": {nil, nil, false, true},
	} {
		r := &repository{outcomes: map[string]outcome{"push": either, "own": starts}, pairs: map[string]string{"own": "push"}}
		c := &checker{stage: &stage{repositories: []*repository{r}}}
		e := &invariants.Evidence{Events: []v1alpha1.GitEvent{eventWith("push", test.push), eventWith("own", test.own)}}
		if broken := c.paired(e); len(broken) > 0 != test.twice {
			t.Errorf("%s: %v", what, broken)
		}
		if broken := c.ignored(e); len(broken) > 0 != test.none {
			t.Errorf("%s: %v", what, broken)
		}
	}
}

// eventWith returns the event of a delivery with runs of some pipelines.
func eventWith(key string, pipelines []string) (event v1alpha1.GitEvent) {
	event.Name, event.Spec.DeliveryKey, event.Status.Disposition = key, key, v1alpha1.DispositionIgnored
	for _, pipeline := range pipelines {
		event.Status.Disposition = v1alpha1.DispositionRuns
		name, never := strings.CutPrefix(pipeline, "never ")
		run := v1alpha1.Run{Pipeline: name, UID: "created"}
		if never {
			run.UID = ""
		}
		event.Status.Runs = append(event.Status.Runs, run)
	}
	return event
}
