// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"slices"
	"strconv"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/credentials"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// between returns an env whose second attempt is stored and not created yet.
func between(t *testing.T, keep string) *env {
	t.Helper()
	w := newEnv(t, helloFile("hello"))
	if keep != "" {
		w = newEnv(t, keepFile("hello", strconv.Quote(keep)))
	}
	_, _ = w.reconcile()
	w.advance(time.Minute)
	w.fails(evicted)
	_, _ = w.reconcile()
	if run := w.event().Status.Runs[0]; run.Attempt() != 2 || run.UID != "" {
		t.Fatalf("the second attempt is not stored, or exists already: %+v", run)
	}
	return w
}

// refuse makes each create of a PipelineRun fail n times.
func (w *env) refuse(n int, err error) {
	w.asked = func(action clienttesting.Action) error {
		if n == 0 || !action.Matches("create", "pipelineruns") {
			return nil
		}
		n--
		return err
	}
}

// No commit replaces another attempt of a run that has started, whatever its creation waits for.
func TestNewerCommitDoesNotReplaceWaitingAttempt(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]error{
		"a quota":         errQuota,
		"a control plane": apierrors.NewInternalError(errRefused),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := between(t, "")
			w.git.newer = newerSHA
			w.refuse(3, refusal)
			w.settleAttempts(evicted)
			w.wantAttempts(2, status.Success)
		})
	}
}

// A user or another controller that deletes the PipelineRun of a failed attempt changes nothing for
// the next one.
func TestDeletedEarlierAttemptChangesNothing(t *testing.T) {
	t.Parallel()
	for name, during := range map[string]bool{"before the next one is created": false, "during the next one": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := between(t, "")
			first := w.runs()[0].Name
			if during {
				w.advance(time.Minute)
				_, _ = w.reconcile()
			}
			w.must(w.tekton.Tracker().Delete(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"), tenant, first))
			w.settleAttempts(evicted)
			if got := w.attempts(); !slices.Equal(got, []string{"2"}) || w.conclusions()["hello"] != status.Success {
				t.Errorf("attempts %v, and the check says %q", got, w.conclusions()["hello"])
			}
		})
	}
}

// max-keep-runs counts each attempt. The earlier one is deleted first.
func TestEarlierAttemptIsPruned(t *testing.T) {
	t.Parallel()
	for keep, want := range map[string]string{"1": "1", "2": "1 1", "3": "1 1 old-1"} {
		t.Run(keep, func(t *testing.T) {
			t.Parallel()
			w := between(t, keep)
			w.history(2)
			w.settleAttempts(evicted)
			if got := w.remainingRuns(); got != want || !slices.Contains(w.attempts(), "2") {
				t.Errorf("%q are left with the attempts %v, want %q and the second attempt", got, w.attempts(), want)
			}
			if got := w.conclusions()["hello"]; got != status.Success {
				t.Errorf("the check says %q", got)
			}
		})
	}
}

// Without the Repository, the next attempt is not created, and the check does not stay pending.
func TestDeletedRepositoryEndsAttempts(t *testing.T) {
	t.Parallel()
	w := between(t, "")
	// so that it is read live
	w.repository = func(r *pacv1alpha1.Repository) { r.Spec.URL = "https://git.example/acme/renamed" }
	w.must(w.own.PipelinesascodeV1alpha1().Repositories(tenant).Delete(t.Context(), "app", metav1.DeleteOptions{}))
	w.kill()
	w.settleAttempts()
	run := w.event().Status.Runs[0]
	if run.Result == nil || run.Result.Reason != credentials.ReasonRepositoryGone ||
		w.count("create pipelineruns") != 1 || w.event().Status.Disposition != v1alpha1.DispositionRuns {
		t.Errorf("%d PipelineRuns were created, and the event has %+v", w.count("create pipelineruns"), run)
	}
	if got := w.conclusions()["hello"]; got != status.Cancelled {
		t.Errorf("the check says %q", got)
	}
}

// As long as the next attempt does not exist, the earlier one stays one whose check is not
// reported: if the event is deleted, the sweep finds no other PipelineRun of that check.
func TestEarlierAttemptIsReportedOnceTheNextExists(t *testing.T) {
	t.Parallel()
	w := between(t, "")
	for range 3 {
		_, _ = w.reconcile()
	}
	if got := w.runs()[0].Labels[pipelinesascode.State]; got == pipelinesascode.StateCompleted {
		t.Errorf("the state of attempt 1 is %q, and there is no attempt 2", got)
	}
	w.settleAttempts(evicted)
	w.wantAttempts(2, status.Success)
}

// A check that is in progress never goes back to queued: some Git services refuse that.
func TestCancelledAttemptIsNotQueuedAgain(t *testing.T) {
	t.Parallel()
	w := between(t, "")
	_, _ = w.reconcile()
	w.edit(func(e *v1alpha1.GitEvent) {
		e.Annotations = map[string]string{plumbline.CancelAnnotation + "comment-1": `{"why":"cancelled by dev"}`}
	})
	w.asked = func(action clienttesting.Action) error {
		if action.Matches("get", "pipelineruns") {
			return apierrors.NewInternalError(errRefused)
		}
		return nil
	}
	_, _ = w.reconcile()
	w.asked = nil
	w.settleAttempts()
	progress := false
	for _, check := range w.git.writes {
		if progress = progress || check.State == status.InProgress; progress && check.State == status.Queued {
			t.Errorf("a check in progress was reported as queued: %+v", check)
		}
	}
	if got := w.conclusions()["hello"]; got != status.Cancelled {
		t.Errorf("the check says %q", got)
	}
}
