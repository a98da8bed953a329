// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"strings"
	"testing"
	"time"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resources"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// The check stays in progress between two attempts and says why; it never goes back.
func TestCheckStaysInProgressBetweenAttempts(t *testing.T) {
	t.Parallel()
	w := failedOnce(t)
	for range 3 {
		_, _ = w.reconcile()
	}
	const title = "Attempt 2 of 2: attempt 1 ended because of a cluster problem ("
	if got := w.git.checks["1"]; got.State != status.InProgress || !strings.HasPrefix(got.Title, title) ||
		len(w.runs()) != 1 {
		t.Fatalf("before the second attempt the check is %s %q, with %d PipelineRuns", got.State, got.Title, len(w.runs()))
	}
	w.advance(time.Minute)
	_, _ = w.reconcile()
	if got := w.git.checks["1"]; got.State != status.InProgress || !strings.HasPrefix(got.Title, title) ||
		len(w.runs()) != 2 {
		t.Errorf("during the second attempt the check is %s %q, with %d PipelineRuns", got.State, got.Title, len(w.runs()))
	}
	if c := w.event().Status.GetCondition(v1alpha1.GitEventCreated); !c.IsTrue() {
		t.Errorf("Created is %+v", c)
	}
}

// The second attempt uses the Secret of the first, with a token that has not expired, and keeps the
// slot.
func TestSecondAttemptKeepsSlotAndGetsValidToken(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.slots()
	_, _ = w.reconcile()
	name := w.event().Status.Runs[0].Name
	w.slots(pacv1alpha1.Slot{Run: name, Event: "push-1"})
	_, _ = w.reconcile()
	w.advance(3 * time.Hour) // no token lives that long
	w.fails(evicted)
	for range 2 {
		_, _ = w.reconcile()
	}
	w.advance(time.Minute)
	_, _ = w.reconcile()
	run := w.event().Status.Runs[0]
	if run.UID == "" || run.Attempt() != 2 || run.Secret != resources.SecretName(name) || w.secrets() != 2 {
		t.Fatalf("the second attempt is %+v, with %d secrets", run, w.secrets())
	}
	if !run.SecretRenewAt.After(w.clock.Now()) {
		t.Errorf("the token of the second attempt is to be renewed at %v, and it is %v", run.SecretRenewAt, w.clock.Now())
	}
}

// An event of a version that knew no attempts has only the first.
func TestRunOfOlderVersionHasNoOtherAttempt(t *testing.T) {
	t.Parallel()
	w := failedOnce(t)
	event := w.event()
	event.Status.Runs[0].InfrastructureRetries = 0
	w.must(w.own.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("gitevents"), event, system))
	w.kill()
	w.settleAttempts(evicted)
	w.wantAttempts(1, status.Failure)
}
