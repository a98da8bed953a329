// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
)

// notConfirmed is the error of a service about a delivery that it may have sent.
func notConfirmed(*v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
	return nil, fault.Transientf(fault.ReasonNotConfirmed, "branch main is not at commit %s", sha)
}

// S11: an event that the Git service does not confirm for longer than any replica lags is ignored,
// with the reason in the status. No run is created, no check is sent, and the team is not bothered
// with somebody's forgery.
func TestUnconfirmedEventIsIgnored(t *testing.T) {
	t.Parallel()
	w, told := received(t), []string{}
	w.git.complete, w.git.newer = notConfirmed, newerSHA
	after := w.reconcileEvery(time.Minute, time.Hour, &told)
	if after < 10*time.Minute || after > 20*time.Minute {
		t.Errorf("ended after %v, want ten minutes and a bit", after)
	}
	e := w.event()
	if e.Status.Disposition != v1alpha1.DispositionIgnored || e.Status.Plan.Reason != fault.ReasonNotConfirmed ||
		e.Status.Plan.Message == "" {
		t.Errorf("%s with %+v, want it ignored", e.Status.Disposition, e.Status.Plan)
	}
	if len(w.git.writes) != 0 || len(w.runs()) != 0 || strings.Contains(strings.Join(told, " "), attempt.ReasonGivenUp) {
		t.Errorf("%d runs, checks %v, told %q: want nothing", len(w.runs()), w.git.writes, told)
	}
}

// A lagging replica loses no event.
func TestLateConfirmationRuns(t *testing.T) {
	t.Parallel()
	w := received(t)
	w.git.complete, w.git.newer = notConfirmed, newerSHA // it knows only what was there before
	w.advanceAndReconcile(time.Second)
	w.advanceAndReconcile(9 * time.Minute)
	w.git.complete, w.git.newer = nil, ""
	w.settle(corev1.ConditionTrue)
	w.wantSuccess()
}

// S12: while the service cannot be asked, nothing is decided, however long that takes.
func TestOutageIsNoMissingConfirmation(t *testing.T) {
	t.Parallel()
	w, told := received(t), []string{}
	w.git.complete = func(*v1alpha1.GitEventSpec) (*v1alpha1.GitEventSpec, error) {
		return nil, fault.Transientf(fault.ReasonGitUnavailable, "502")
	}
	if after := w.reconcileEvery(time.Hour, oneDay, &told); after >= 0 {
		t.Errorf("ended after %v of an outage", after)
	}
	w.git.complete = nil
	w.settle(corev1.ConditionTrue)
	w.wantSuccess()
}
