// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/report"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

const laterSHA = "9999999999999999999999999999999999999999"

// pushed returns an env in which an untrusted user has pushed to a pull request, which shows that
// it waits, and has just pushed again.
func pushed(t *testing.T) *env {
	t.Helper()
	w := newEnv(t)
	w.git.canWrite = func(string) (bool, error) { return false, nil }
	w.fromFork()
	second := w.event()
	second.Name, second.UID, second.Spec.DeliveryKey, second.Spec.SHA, second.ResourceVersion = "push-2",
		types.UID("second"), "2", laterSHA, ""
	_, _ = w.reconcile()
	if !w.event().Settled() || len(w.git.checks) != 1 {
		t.Fatalf("the first push: %+v, checks %v", w.event().Status, w.git.checks)
	}
	w.must(w.own.Tracker().Add(second))
	return w
}

func (w *env) eventNamed(name string) *v1alpha1.GitEvent {
	w.t.Helper()
	for _, e := range w.events() {
		if e.Name == name {
			return &e
		}
	}
	w.t.Fatalf("no event %s", name)
	return nil
}

// S7: a second report for a pull request waits for its minute, which costs neither a status write
// nor a call, and then it is sent.
func TestLaterUntrustedPushIsReportedAMinuteLater(t *testing.T) {
	t.Parallel()
	w := pushed(t)
	_, err := w.reconcileEvent("push-2")
	if err == nil || len(w.git.checks) != 1 || w.eventNamed("push-2").Settled() {
		t.Fatalf("error %v, %d checks: want it to wait", err, len(w.git.checks))
	}
	if len(w.wakes) != 1 || w.wakes[0] != report.PullInterval {
		t.Errorf("woken after %v, want %v", w.wakes, report.PullInterval)
	}
	w.calls, w.git.writes = nil, nil
	w.advance(report.PullInterval / 2)
	_, _ = w.reconcileEvent("push-2")
	if got := strings.Join(w.calls, " "); got != "" || len(w.git.writes) != 0 {
		t.Errorf("a look before its time costs %q and %d writes", got, len(w.git.writes))
	}
	w.advance(report.PullInterval / 2)
	_, _ = w.reconcileEvent("push-2")
	if e := w.eventNamed("push-2"); !e.Settled() || e.Status.Disposition != v1alpha1.DispositionPending ||
		len(w.git.checks) != 2 || w.git.checks["2"].State != status.Queued {
		t.Errorf("status %+v, checks %v: want the second push reported", e.Status, w.git.checks)
	}
}

// A commit that, according to the Git service, is no head any more is not reported, and its
// delivery may be redelivered.
func TestOutdatedUntrustedPushIsNotReported(t *testing.T) {
	t.Parallel()
	w := pushed(t)
	_, _ = w.reconcileEvent("push-2")
	w.git.newer = strings.Repeat("8", 40)
	w.advance(report.PullInterval)
	_, _ = w.reconcileEvent("push-2")
	if e := w.eventNamed("push-2"); !e.Settled() || !e.MayRunAgain() || len(w.git.checks) != 1 {
		t.Errorf("status %+v, checks %v: want it settled and not reported", e.Status, w.git.checks)
	}
}

// If that question fails, the report waits.
func TestUnreadableHeadDropsNoReport(t *testing.T) {
	t.Parallel()
	w := pushed(t)
	_, _ = w.reconcileEvent("push-2")
	w.git.newerErr = errHidden
	w.advance(report.PullInterval)
	_, err := w.reconcileEvent("push-2")
	if err == nil || w.eventNamed("push-2").Settled() {
		t.Fatalf("error %v, settled without an answer", err)
	}
	w.git.newerErr = nil
	for range 5 {
		w.advance(6 * time.Minute)
		_, _ = w.reconcileEvent("push-2")
	}
	if len(w.git.checks) != 2 {
		t.Errorf("checks %v, want the second push reported", w.git.checks)
	}
}

// A process that takes over continues a started report, which may be shown already. A new process
// sends a report once more, and drops none.
func TestStartedReportIsNotDelayed(t *testing.T) {
	t.Parallel()
	w := pushed(t)
	w.kill()
	w.hook = only("update gitevents/status", outcome{kill: true, apply: true})
	for range 3 { // the plan is stored, then the intent
		_, _ = w.reconcileEvent("push-2")
	}
	w.hook = nil
	for range 4 {
		_, _ = w.reconcileEvent("push-2")
		w.advance(time.Minute)
	}
	if e := w.eventNamed("push-2"); len(w.git.checks) != 2 || !e.Settled() {
		t.Errorf("status %+v, checks %v: want the second push reported", e.Status, w.git.checks)
	}
}

// A replaced push does not wait for its minute: it would use the Repository's budget of unsettled
// events.
func TestReplacedUntrustedPushDoesNotWait(t *testing.T) {
	t.Parallel()
	w := pushed(t)
	_, _ = w.reconcileEvent("push-2")
	third := w.eventNamed("push-2").DeepCopy()
	third.Name, third.UID, third.Spec.DeliveryKey, third.ResourceVersion = "push-3", types.UID("third"), "3", ""
	third.Spec.SHA, third.Spec.Before, third.Status = strings.Repeat("8", 40), laterSHA, v1alpha1.GitEventStatus{}
	w.must(w.own.Tracker().Add(third))
	w.wakes = nil
	_, _ = w.reconcileEvent("push-3")
	if len(w.wakes) == 0 || w.wakes[0] != 0 {
		t.Errorf("woken after %v, want the second push at once", w.wakes)
	}
	_, _ = w.reconcileEvent("push-2")
	if e := w.eventNamed("push-2"); !e.Settled() || !e.MayRunAgain() || len(w.git.checks) != 1 {
		t.Errorf("status %+v, checks %v: want it settled and not reported", e.Status, w.git.checks)
	}
	w.advance(report.PullInterval)
	_, _ = w.reconcileEvent("push-3")
	if e := w.eventNamed("push-3"); !e.Settled() || len(w.git.checks) != 2 {
		t.Errorf("status %+v, checks %v: want the newest push reported", e.Status, w.git.checks)
	}
}

// A commit that an authorized user has started meanwhile does not show "Pending approval"
// afterwards.
func TestRunningCommitIsNotReportedAsWaiting(t *testing.T) {
	t.Parallel()
	w := pushed(t)
	_, _ = w.reconcileEvent("push-2")
	reopened := w.eventNamed("push-2").DeepCopy()
	reopened.Name, reopened.UID, reopened.Spec.DeliveryKey, reopened.ResourceVersion = "push-3", types.UID("third"), "3",
		""
	reopened.Spec.Actor, reopened.Status = "writer", v1alpha1.GitEventStatus{}
	w.must(w.own.Tracker().Add(reopened))
	w.git.canWrite = func(string) (bool, error) { return true, nil }
	hello := helloFile("hello")
	hello.Data = []byte(strings.ReplaceAll(string(hello.Data), "[push]", "[pull_request]"))
	w.git.files = []git.File{hello}
	w.advance(2 * time.Minute) // as long as a no is remembered
	_, _ = w.reconcileEvent("push-3")
	if len(w.runs()) != 1 {
		t.Fatalf("%d runs: %+v", len(w.runs()), w.eventNamed("push-3").Status)
	}
	before := len(w.git.checks)
	_, _ = w.reconcileEvent("push-2")
	if e := w.eventNamed("push-2"); !e.Settled() || len(w.git.checks) != before {
		t.Errorf("status %+v, checks %v: want it settled and not reported", e.Status, w.git.checks)
	}
}

// A commit that another event has started while this one's report was late does not stay pending:
// the report is concluded, and the event says who has started it.
func TestLateReportOfAWaitingCommitIsConcluded(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	w.git.canWrite = func(string) (bool, error) { return false, nil }
	w.fromFork()
	w.git.asked = func(status.Check) error { // by the time it lands
		comment := w.event()
		comment.Name, comment.UID, comment.ResourceVersion = "comment-1", types.UID("comment"), ""
		comment.Status = v1alpha1.GitEventStatus{
			Phase: v1alpha1.PhaseSettled, Disposition: v1alpha1.DispositionRuns,
			Plan: &v1alpha1.Plan{HeadSHA: sha, Approval: &v1alpha1.Approval{By: "member"}},
		}
		comment.Labels = map[string]string{plumbline.SubjectLabel: comment.Spec.Subject()}
		w.git.asked = nil
		return w.own.Tracker().Add(comment)
	}
	_, _ = w.reconcile()
	e := w.eventNamed(w.event().Name)
	if check := w.git.checks["1"]; check.State != status.Completed || check.Conclusion != status.Skipped ||
		len(w.git.checks) != 1 {
		t.Errorf("checks %v, want the one skipped", w.git.checks)
	}
	if !e.Settled() || e.Status.Plan.StartedBy != "comment-1" || e.Status.Disposition != v1alpha1.DispositionPending {
		t.Errorf("%+v", e.Status)
	}
}
