// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"knative.dev/pkg/logging"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// ticking is a clock that goes on whenever it is read, so that time passes between any two
// questions.
type ticking struct {
	clock.PassiveClock
	now time.Time
}

func (c *ticking) Now() time.Time {
	c.now = c.now.Add(time.Millisecond)
	return c.now
}

func (c *ticking) Since(then time.Time) time.Duration { return c.Now().Sub(then) }

// E4: whether reports are given up is asked once. Whenever the time of the next attempt comes, even
// right after the answer, an event is not settled without a word about the report that nobody got.
func TestGivenUpReportIsCounted(t *testing.T) {
	t.Parallel()
	givenUp := 0
	for before := range 40 {
		w := orphaned(t)
		w.finishRuns(corev1.ConditionTrue)
		for range 3 {
			w.advanceAndReconcile(4 * time.Minute)
		}
		wait := w.event().Status.Waits
		if len(wait) != 1 || wait[0].Step != v1alpha1.StepReport || wait[0].NotBefore == nil {
			t.Fatalf("waits %+v, want the report's with its time", wait)
		}
		core, logs := observer.New(zapcore.ErrorLevel)
		r := w.process()
		r.state.Clock = &ticking{now: wait[0].NotBefore.Add(-time.Duration(before) * time.Millisecond)}
		r.cluster.Clock = r.state.Clock
		_ = r.Reconcile(logging.WithLogger(t.Context(), zap.New(core).Sugar()), system+"/push-1")
		told := logs.FilterMessage("Reports are given up").Len()
		if settled := w.event().Settled(); settled && told != 1 {
			t.Errorf("%d readings of the clock before the next attempt: settled, and told %d times", before, told)
		}
		givenUp += told
	}
	if givenUp == 0 {
		t.Error("no event was given up")
	}
}
