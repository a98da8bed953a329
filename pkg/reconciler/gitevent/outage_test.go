// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"errors"
	"testing"
	"time"

	"knative.dev/pkg/controller"
)

// However often an event was woken while something was away, it is tried again after as long as that has been away.
func TestAnEventIsTriedAgainAfterAsLongAsItFailed(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	o := newOutages()
	start := time.Unix(1000, 0)
	for _, step := range []struct {
		what  string
		err   error
		at    time.Duration
		after time.Duration // 0: it does not fail
	}{
		{"a first failure", failed, 0, minRetry},
		{"woken by a run", failed, 400 * time.Millisecond, minRetry},
		{"woken by another one", failed, 6 * time.Second, 6 * time.Second},
		{"a long outage", failed, 3 * time.Hour, maxRetry},
		{"it waits for a time that is known", controller.NewRequeueAfter(time.Minute), 3 * time.Hour, 0},
		{"another outage", failed, 4 * time.Hour, minRetry},
		{"its end", nil, 5 * time.Hour, 0},
		{"a third one", failed, 6 * time.Hour, minRetry},
		{"another process leads", controller.NewSkipKey("push-1"), 7 * time.Hour, 0},
	} {
		after, failing := o.again("push-1", step.err, start.Add(step.at))
		if failing != (step.after > 0) || after != step.after {
			t.Errorf("%s: %v, %v, want %v", step.what, failing, after, step.after)
		}
	}
	if len(o.since) != 0 {
		t.Errorf("remembers %v", o.since)
	}
}
