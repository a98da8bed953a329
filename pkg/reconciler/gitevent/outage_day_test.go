// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// E5: a run ends, and the Git service answers 503 to every report for a day. There is no limit of
// attempts; at the end of the day there is one in 1000 s at most; and when the service is back,
// success is reported once.
func TestE5ReportsAreRetriedForADay(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	queue := newQueue(w)
	pass := func(d time.Duration) { queue.run(w.clock.Now().Add(d)) }
	pass(30 * time.Second)
	if got, open := w.conclusions()["hello"]; !open || got != "" || len(w.runs()) != 1 {
		t.Fatalf("%d runs, checks %v: want one that is in progress", len(w.runs()), w.conclusions())
	}
	var calls []time.Time
	w.git.asked = func(status.Check) error {
		calls = append(calls, w.clock.Now())
		return errDown
	}
	w.finishRuns(corev1.ConditionTrue)
	queue.after(w.event().Name, 0)
	down := w.clock.Now()
	pass(oneDay)

	last := down.Add(oneDay - 6*time.Hour)
	late := 0
	for i, at := range calls {
		if at.Before(last) {
			continue
		}
		late++
		if gap := at.Sub(calls[i-1]); gap < backoff.MaxWait {
			t.Errorf("call %d comes %v after the one before", i, gap)
		}
	}
	if late < 20 { // and does not stop
		t.Errorf("%d of %d calls in the last six hours", late, len(calls))
	}
	if e := w.event(); e.Settled() {
		t.Errorf("the event is settled: %+v", e.Status)
	}

	w.git.asked = nil
	pass(backoff.MaxWait + time.Second)
	concluded := 0
	for _, write := range w.git.writes {
		if write.Conclusion == status.Success {
			concluded++
		}
	}
	if concluded != 1 || w.conclusions()["hello"] != status.Success {
		t.Errorf("success was reported %d times, and the check says %q", concluded, w.conclusions()["hello"])
	}
	pass(time.Hour)
	if e := w.event(); !e.Settled() {
		t.Errorf("the event is %q an hour later, want it settled", e.Status.Phase)
	}
}
