// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"errors"
	"testing"
	"time"

	"knative.dev/pkg/controller"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// During an outage the step is retried after as long as the outage has lasted, however often the
// event is woken. It is retried no more often than the workqueue's backoff would retry it.
func TestStepIsRetriedAfterAsLongAsItHasFailed(t *testing.T) {
	t.Parallel()
	failed, busy := errors.New("failed"), fault.Throttledf(fault.ReasonBusy, time.Second, "others are next")
	patch := Step{Name: "patch", Of: "run", Version: "a"}
	timers, start := New(), time.Unix(1000, 0)
	for _, step := range []struct {
		what string
		err  error
		at   time.Duration
		left time.Duration // it is not tried before
		next time.Duration // 0: the step asks for nothing
	}{
		{"a first failure", failed, 0, 0, MinWait},
		{"a second one at once", failed, 5 * time.Millisecond, 5 * time.Millisecond, MinWait},
		{"woken by something else", failed, 6 * time.Second, 20 * time.Millisecond, 6 * time.Second},
		{"its turn did not come, which changes nothing", busy, 8 * time.Second, 0, 4 * time.Second},
		{"a long outage", failed, 3 * time.Hour, 40 * time.Millisecond, MaxWait},
		{"a part of it has a time of its own", errors.Join(failed, fault.Throttledf("Limit", time.Minute, "later")),
			4 * time.Hour, 80 * time.Millisecond, time.Minute},
		{"it waits for a time that is known", fault.Throttledf("Limit", time.Minute, "later"), 5 * time.Hour, 0, 0},
		{"another outage", failed, 6 * time.Hour, 0, MinWait},
		{"its end", nil, 7 * time.Hour, 0, 0},
		{"a third one", failed, 8 * time.Hour, 0, MinWait},
		{"a timer of the workqueue", controller.NewRequeueAfter(time.Minute), 9 * time.Hour, 0, 0},
		{"a fourth one", failed, 10 * time.Hour, 0, MinWait},
		{"another process leads", controller.NewSkipKey("push-1"), 11 * time.Hour, 0, 0},
	} {
		now := start.Add(step.at)
		timers.Note("push-1", patch, step.err, now)
		if left := timers.Left("push-1", patch, now); left != step.left {
			t.Errorf("%s: tried after %v, want %v", step.what, left, step.left)
		}
		if next, failing := timers.Next("push-1", now); next != step.next || failing != (step.next > 0) {
			t.Errorf("%s: asks for %v, want %v", step.what, next, step.next)
		}
	}
	if len(timers.keys) != 0 {
		t.Errorf("remembers %v", timers.keys)
	}
}

func TestStepsHaveTheirOwnTimers(t *testing.T) {
	t.Parallel()
	timers, start := New(), time.Unix(1000, 0)
	old := Step{Name: "report", Of: "run", Version: "started"}
	timers.Note("push-1", old, errors.New("failed"), start)
	now := start.Add(time.Minute)
	timers.Note("push-1", old, errors.New("failed"), now)
	for what, other := range map[string]Step{
		"what there is to say is news": {Name: "report", Of: "run", Version: "ended"},
		"another run":                  {Name: "report", Of: "other", Version: "started"},
		"another step":                 {Name: "patch", Of: "run", Version: "started"},
	} {
		if left := timers.Left("push-1", other, now); left != 0 {
			t.Errorf("%s: waits %v", what, left)
		}
	}
	if timers.Left("push-2", old, now) != 0 || timers.Left("push-1", old, now) != 10*time.Millisecond {
		t.Error("events are mixed up")
	}
	if next, waits := timers.Next("push-1", now.Add(2*time.Minute)); waits {
		t.Errorf("a step that was not among what there was to do asks for %v", next)
	}
	if timers.Forget("push-1"); len(timers.keys) != 0 {
		t.Errorf("remembers %v", timers.keys)
	}
}
