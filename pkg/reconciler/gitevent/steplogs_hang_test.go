// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

func TestHangingLogDelaysNoOtherRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _, _ := failing(t, func(ctx context.Context, run string) error {
			if strings.Contains(run, "slow") {
				return hang(ctx, run)
			}
			return nil
		}, "slow", "other")
		_, _ = w.reconcile()
		slow, other := w.check("slow"), w.check("other")
		if slow.Conclusion != status.Failure || other.Conclusion != status.Failure ||
			!strings.Contains(other.Text, fakeLog) ||
			strings.Contains(slow.Text, fakeLog) {
			t.Errorf("slow %+v\nother %+v", slow, other)
		}
		if runs := w.event().Status.Runs; len(runs) != 2 || v1alpha1.PhaseSettled == w.event().Status.Phase {
			t.Errorf("%+v", w.event().Status)
		}
		w.alive.steps.Logs.Clear()
	})
}

func TestPanicOfLogReaderLosesOnlyTheLog(t *testing.T) {
	t.Parallel()
	w, _, _ := failing(t, func(context.Context, string) error { panic("a defect") }, "hello")
	for range 3 {
		_, _ = w.reconcile()
	}
	c := w.check("hello")
	if c.Conclusion != status.Failure || !strings.Contains(c.Text, "within a minute") || !w.event().Settled() {
		t.Errorf("settled %v, %+v", w.event().Settled(), c)
	}
}
