// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/attempt"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// fromFork makes the event a pull request from an untrusted user's fork.
func (w *env) fromFork() {
	e := w.event()
	e.Spec.Trigger, e.Spec.EventType, e.Spec.BaseRef, e.Spec.HeadRef = v1alpha1.TriggerPullRequest, "pull_request", "main",
		"feature"
	e.Spec.PullRequest = &v1alpha1.PullRequest{Number: 3, Author: "stranger", HeadProjectID: 99}
	w.replaceEvent(e)
}

func TestForkOfUntrustedUserNeverRuns(t *testing.T) {
	t.Parallel()
	no := func(string) (bool, error) { return false, nil }
	tests := map[string]struct {
		canWrite    func(string) (bool, error)
		wantPending bool
	}{
		"without write access it waits for approval": {no, true},
		"a server error is not an answer": {
			func(string) (bool, error) { return false, fault.Transientf("Unavailable", "502") }, false,
		},
		"a forbidden look-up is not an answer": {
			func(string) (bool, error) { return false, fault.Operatorf("Forbidden", "403") }, false,
		},
		"an unclassified error is not an answer": {func(string) (bool, error) { return true, errors.New("odd") }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, helloFile("hello"))
			w.fromFork()
			w.git.canWrite = test.canWrite
			for range 5 {
				_, _ = w.reconcile()
			}
			if len(w.runs()) != 0 || w.secrets() != 1 {
				t.Errorf("%d runs and %d secrets, want none and the App's only", len(w.runs()), w.secrets())
			}
			if pending := len(w.git.checks) == 1; pending != test.wantPending {
				t.Errorf("checks: %v", w.git.checks)
			}
			if test.wantPending && (!w.event().Settled() || w.git.checks["1"].Conclusion != "" ||
				w.git.checks["1"].State != status.Queued) {
				t.Errorf("want one queued check and a settled event: %v, %v", w.git.checks["1"], w.event().Status)
			}
		})
	}
}

func TestInvalidDefinitionFailsOnlyItsPipeline(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("good"),
		git.File{Path: ".tekton/bad.yaml", Data: []byte("kind: PipelineRun\n  apiVersion: [")})
	w.settle(corev1.ConditionTrue)
	got := map[string]status.Conclusion{}
	for _, check := range w.git.checks {
		got[check.Name] = check.Conclusion
	}
	if len(got) != 2 || got["Pipelines as Code CI / good"] != status.Success {
		t.Errorf("checks are %v, want good to succeed and bad.yaml to fail", got)
	}
	if len(w.runs()) != 1 {
		t.Errorf("%d runs, want the good one", len(w.runs()))
	}
}

func TestNothingMatchesLeavesNoCheck(t *testing.T) {
	t.Parallel()
	file := helloFile("hello")
	file.Data = []byte(strings.Replace(string(file.Data), "[push]", "[pull_request]", 1))
	w := newEnv(t, file)
	w.settle(corev1.ConditionTrue)
	e := w.event()
	if len(w.git.writes) != 0 || e.Status.Disposition != v1alpha1.DispositionIgnored {
		t.Errorf("writes %v, disposition %s: want none and Ignored", w.git.writes, e.Status.Disposition)
	}
	if len(e.Status.Plan.Decisions) != 1 ||
		!strings.Contains(e.Status.Plan.Decisions[0].Reason, "on-event [pull_request]") {
		t.Errorf("a settled event must still say why: %+v", e.Status.Plan.Decisions)
	}
}

// C10: somebody else's object of the planned name is neither adopted nor changed nor deleted nor
// reported as a failure. The event waits for an operator, who deletes the object, and then ours is
// created.
func TestForeignPipelineRunIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.hook = func(n int, call string) outcome { return outcome{kill: call == "create pipelineruns"} }
	_, _ = w.reconcile()
	w.hook = nil
	foreign := &pipelinev1.PipelineRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: w.event().Status.Runs[0].Name, UID: "foreign"},
	}
	// The labels of ours without the key: a person copied a run of another event.
	foreign.Labels = map[string]string{
		plumbline.InstallationLabel: w.event().Namespace, pipelinesascode.ManagedByLabel: pipelinesascode.ManagedBy,
	}
	foreign.Annotations = map[string]string{
		plumbline.RunKeyAnnotation: w.event().Namespace + "/push-of-another-time/.tekton/run.yaml#0",
	}
	w.must(w.tekton.Tracker().Add(foreign))
	for range 3 {
		_, _ = w.reconcile()
	}
	if runs := w.runs(); len(runs) != 1 || !cmp.Equal(runs[0].ObjectMeta, foreign.ObjectMeta) {
		t.Errorf("the foreign run is %+v", runs)
	}
	if e := w.event(); e.Status.Runs[0].UID != "" ||
		e.Status.GetCondition(v1alpha1.GitEventCreated).Reason != "ForeignPipelineRun" {
		t.Errorf("status %+v", e.Status)
	}
	if waits := w.event().Status.Waits; w.git.checks["1"].State != status.Queued || len(waits) == 0 ||
		waits[0].Class != fault.Operator.String() {
		t.Errorf("checks %v and waits %+v: want a queued check, and an operator", w.git.checks, waits)
	}
	w.must(w.tekton.Tracker().Delete(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"), tenant, foreign.Name))
	w.clock.SetTime(w.clock.Now().Add(time.Hour))
	w.settle(corev1.ConditionTrue)
	if runs := w.runs(); len(runs) != 1 || runs[0].UID == foreign.UID || w.git.checks["1"].Conclusion != status.Success {
		t.Errorf("once it is deleted: runs %+v, checks %v", runs, w.git.checks)
	}
}

// E3: a run that is deleted before it finished is cancelled, once the API server itself says that
// it is gone.
func TestDeletedRunIsCancelled(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	_, _ = w.reconcile()
	w.must(w.tekton.Tracker().Delete(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"), tenant, w.runs()[0].Name))
	_, _ = w.reconcile()
	if got := w.git.checks["1"].Conclusion; got != status.Cancelled {
		t.Errorf("the check says %q, want cancelled", got)
	}
	if !w.event().Settled() {
		t.Errorf("nothing is left to do: %+v", w.event().Status)
	}
}

// H6: a process that was paused after it recorded its intent sends nothing that another process may
// have sent meanwhile.
func TestPausedProcessSendsNothing(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.hook = func(_ int, call string) outcome {
		if call == "get secrets" && w.event().Status.Plan != nil {
			w.clock.SetTime(w.clock.Now().Add(attempt.Fence + time.Second))
			w.edit(func(*v1alpha1.GitEvent) {})
		}
		return outcome{}
	}
	before := len(w.git.writes)
	_, _ = w.reconcile() // plans and reports within one connection
	if len(w.git.writes) == before {
		t.Fatal("the first reconcile must report")
	}
	w.finishRuns(corev1.ConditionTrue)
	sent := len(w.git.writes)
	w.advance(time.Minute) // then the App's Secret is read again
	_, err := w.reconcile()
	if len(w.git.writes) != sent || err == nil || !strings.Contains(err.Error(), "another process has written") {
		t.Errorf("%d writes were sent after a pause, error %v", len(w.git.writes)-sent, err)
	}
}

// D4: a status write that conflicts ends the reconcile. Nothing may be sent that was computed from
// an old version.
func TestConflictSendsNothing(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.hook = always("update gitevents/status", errConflict)
	for range 20 {
		if _, err := w.reconcile(); !apierrors.IsConflict(err) {
			t.Fatalf("error %v, want the conflict, which knative requeues without an error event", err)
		}
	}
	if len(w.git.writes) != 0 || len(w.runs()) != 0 {
		t.Errorf("%d writes and %d runs from versions that were never recorded", len(w.git.writes), len(w.runs()))
	}
}

// K36: a cancelled call is as transient as any other. If its error were dropped, the check would
// stay pending for ever.
func TestCancelledReportIsRetried(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	w.hook = always("put check in_progress", context.Canceled)
	if _, err := w.reconcile(); err == nil {
		t.Error("a report that was cancelled must be requeued")
	}
	w.hook = nil
	w.settle(corev1.ConditionTrue)
	w.wantSuccess()
}
