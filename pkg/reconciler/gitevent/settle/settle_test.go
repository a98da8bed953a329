// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

func TestRevocationIsRetriedWhileThatMayHelp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault *fault.Error
		left  time.Duration
		want  bool
	}{
		"an outage":                           {fault.Transientf("R", "down"), time.Second, true},
		"an outage for RevokeLimit":           {fault.Transientf("R", "down"), 0, false},
		"a rate limit that ends before":       {fault.Throttledf("R", time.Second, "wait"), time.Minute, true},
		"a rate limit that ends at the end":   {fault.Throttledf("R", time.Minute, "wait"), time.Minute, false},
		"a problem that an operator must fix": {fault.Operatorf("R", "no permission"), time.Minute, false},
		"a refused token":                     {fault.Invalidf("R", "no such token"), time.Minute, false},
	} {
		if got := mayHelp(c.fault, c.left); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestSecretIsLeftToTheSweepAfterSecretLimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err     error
		failing time.Duration
		want    bool
	}{
		"released":                      {nil, SecretLimit, false},
		"refused for less":              {fault.Transientf("R", "refused"), SecretLimit - time.Second, false},
		"refused for the limit":         {fault.Transientf("R", "refused"), SecretLimit, true},
		"another process has the event": {&fault.Error{Class: fault.Conflict}, SecretLimit, false},
	} {
		if got := secretStays(c.err, c.failing); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestPatchesAreLeftToTheSweepAfterPatchLimit(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	since := func(d time.Duration) *v1alpha1.Wait { return &v1alpha1.Wait{Since: metav1.NewTime(now.Add(-d))} }
	for name, c := range map[string]struct {
		wait *v1alpha1.Wait
		want bool
	}{
		"no wait":           {nil, false},
		"a wait for less":   {since(PatchLimit - time.Second), false},
		"a wait of an hour": {since(PatchLimit), true},
	} {
		if got := leavesPatches(c.wait, now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A settled event keeps the checks without a conclusion, and the IDs that must still be patched.
func TestStubKeepsWhatTheSweepNeeds(t *testing.T) {
	t.Parallel()
	event := &v1alpha1.GitEvent{Status: v1alpha1.GitEventStatus{Checks: []v1alpha1.Check{
		{Key: "run-1", Name: "build", ID: "7", Concluded: true, Accepted: "digest"},
		{Key: "run-2", Name: "test", ID: "8", Concluded: true, Accepted: "digest"},
	}}}
	left := leftover{patches: []*v1alpha1.Run{{Name: "run-2"}, {Name: "run-3"}}}
	want := []v1alpha1.Check{{Key: "run-2", Name: "test", ID: "8", Concluded: true}}
	if diff := cmp.Diff(want, left.checks(&attempt.Attempt{Event: event})); diff != "" {
		t.Error(diff)
	}
}

// What an operator must fix is retried by the workqueue: settling has no wait in the status.
func TestAgainMakesOperatorsFaultsTransient(t *testing.T) {
	t.Parallel()
	if f := fault.Of(again(fault.Operatorf("R", "no permission"))); f.Class != fault.Transient || f.Reason != "R" {
		t.Errorf("got %v with reason %s", f.Class, f.Reason)
	}
	if err := errors.New("other"); !errors.Is(again(err), err) { //nolint:err113 // any other error
		t.Error("another error is changed")
	}
}
