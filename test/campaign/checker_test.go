// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"testing"
	"time"

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
