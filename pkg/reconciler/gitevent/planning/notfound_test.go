// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"testing"
	"time"
)

func TestNotFoundCountsReadsAtIntervals(t *testing.T) {
	t.Parallel()
	now, m := time.Unix(0, 0), NotFound{}
	for i, c := range []struct {
		after time.Duration
		want  bool
	}{{0, false}, {time.Second, false}, {time.Second, false}, {time.Second, false}, {time.Second, false},
		{2 * time.Second, true}, {0, true}} {
		now = now.Add(c.after)
		if got := m.confirmed("x", now); got != c.want {
			t.Errorf("read %d, at %v: %t, want %t", i+1, now.Sub(time.Unix(0, 0)), got, c.want)
		}
	}
	if m.confirmed("y", now) {
		t.Error("another thing is believed to be missing")
	}
}
