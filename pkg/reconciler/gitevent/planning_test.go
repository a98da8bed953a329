// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// A plan that cannot be stored is not recorded: a waiting run stays unresolved, and still says what
// it waits for.
func TestUnstorablePlanKeepsTheStoredOne(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.fail = func(string) int { return 503 }
	w := newEnv(t, helloFile("hello"), noisy(referring("lint", "lint", "lint")))
	w.useHub(h)
	_, _ = w.reconcile()
	before := w.event().Status
	if len(before.Runs) != 2 || !before.Runs[1].Unresolved {
		t.Fatalf("runs %+v, want lint's to wait", before.Runs)
	}
	h.mu.Lock()
	h.fail = nil
	h.mu.Unlock()
	w.hook = always("create eventpayloads", errThrottled)
	_, err := w.reconcile()
	after := w.event().Status
	if diff := cmp.Diff(before.Runs[1], after.Runs[1]); diff != "" || err == nil {
		t.Errorf("error %v: %s", err, diff)
	}
	if diff := cmp.Diff(before.Plan, after.Plan); diff != "" || len(after.Waits) != len(before.Waits) {
		t.Errorf("waits %+v: %s", after.Waits, diff)
	}
	w.mu.Lock()
	w.hook = nil
	w.mu.Unlock()
	w.settle(corev1.ConditionTrue)
	if diff := cmp.Diff(map[string]status.Conclusion{"hello": status.Success, "lint": status.Success},
		w.conclusions()); diff != "" {
		t.Error(diff)
	}
}

// An attempt that learns nothing new writes nothing, however often it is made.
func TestUnchangedPlanIsNotWritten(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.fail = func(string) int { return 503 }
	w := newEnv(t, helloFile("hello"), referring("lint", "lint", "lint"), annotated("docs", "on-path-change: 'docs/**'"))
	w.useHub(h)
	w.git.changedErr = fault.Transientf("GitUnavailable", "502")
	for range 3 {
		_, _ = w.reconcile()
		w.advance(time.Minute)
	}
	stored, writes, attempts := w.event(), w.count("update gitevents/status"), w.git.changedCalls
	for range 5 {
		_, _ = w.reconcile()
		w.advance(time.Minute)
	}
	if got := w.git.changedCalls - attempts; got != 5 {
		t.Errorf("%d attempts, want 5", got)
	}
	if diff := cmp.Diff(stored.Status.Plan, w.event().Status.Plan); diff != "" ||
		w.count("update gitevents/status") != writes {
		t.Errorf("%d writes more: %s", w.count("update gitevents/status")-writes, diff)
	}
	if stored.Status.Disposition != v1alpha1.DispositionRuns || len(stored.Status.Runs) != 2 {
		t.Errorf("%+v", stored.Status)
	}
}
