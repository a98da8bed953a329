// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"testing"
	"time"
)

// Queued pull requests of a Repository pause for as long as the one before them took, up to
// maxPause. Other events do not, nor a pull request that comes when none is queued.
func TestPullRequestsPauseBetweenEachOther(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		pullsOf    string
		took, rest time.Duration
	}{
		"pull requests":          {"app", 30 * time.Millisecond, 30 * time.Millisecond},
		"one that took for long": {"app", time.Minute, maxPause},
		"pushes":                 {"", 30 * time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t, 4)
			visit := func() Request {
				v := w.visit("team", "github.com", 7)
				v.PullsOf = test.pullsOf
				return v
			}
			first, second, third := w.begin(visit()), visit(), visit()
			for _, v := range []Request{second, third} {
				if w.begin(v) != nil {
					t.Fatal("there are two turns")
				}
			}
			w.pass(test.took)
			w.woken = nil
			first()
			if test.rest > 0 {
				w.pass(test.rest - time.Millisecond)
				if len(w.woken) > 0 {
					t.Error("the second event is woken before the pause ends")
				}
				w.pass(time.Millisecond)
			}
			if len(w.woken) != 1 || w.woken[0] != second.Event {
				t.Errorf("woken are %v, want the second", w.woken)
			}
			w.begin(second)()
			w.begin(third)()
			if release := w.begin(visit()); release == nil {
				t.Error("no event waits, and no slot is free")
			} else {
				release()
			}
			w.nothingLeft()
		})
	}
}
