// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/settle"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// While all patches of PipelineRuns are refused all is reported, tokens are revoked at once, and
// after an hour the event prunes and settles. Its stub has what the sweep is to patch.
func TestEventSettlesDespiteRefusedPatches(t *testing.T) {
	t.Parallel()
	for name, refusals := range map[string][]error{
		"a policy": {errDenied}, "an outage": {errRefused}, "now this, now that": {errDenied, errRefused, errThrottled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, keepFile("hello", `"1"`))
			w.history(3)
			n := 0
			w.hook = func(_ int, call string) outcome {
				if call != "patch pipelineruns" {
					return outcome{}
				}
				n++
				return outcome{err: refusals[n%len(refusals)]}
			}
			began, revoked := w.clock.Now(), time.Duration(-1)
			for range 30 {
				_, _ = w.reconcile()
				w.finishRuns(corev1.ConditionTrue)
				runs := w.event().Status.Runs
				if revoked < 0 && len(runs) > 0 && runs[0].Result != nil && runs[0].Secret == "" {
					revoked = w.clock.Now().Sub(began)
				}
				if w.settled() {
					break
				}
				w.advance(5 * time.Minute)
			}
			took := w.clock.Now().Sub(began)
			if !w.settled() || took < settle.PatchLimit || took > 2*settle.PatchLimit {
				t.Fatalf("settled %t after %s: %v", w.settled(), took, w.waits())
			}
			if revoked < 0 || revoked > 15*time.Minute {
				t.Errorf("the run's secret is done with after %s", revoked)
			}
			w.wantNoFailure()
			if got := w.git.checks["1"].Conclusion; got != status.Success {
				t.Errorf("the check says %q", got)
			}
			if got := w.remainingRuns(); got != "1" {
				t.Errorf("left are %q, and its author wants one", got)
			}
			e := w.event()
			if len(e.Status.Checks) != 1 || e.Status.Checks[0].ID == "" || e.Status.Unreported {
				t.Errorf("checks %+v, unreported %t", e.Status.Checks, e.Status.Unreported)
			}
			if c := e.Status.GetCondition(v1alpha1.GitEventAnnotated); c.IsTrue() {
				t.Errorf("the condition Annotated is %+v", c)
			}
		})
	}
}

// Runs that never got the label "completed" are pruned by what their events have recorded; those of
// open events are not.
func TestUnlabelledRunsArePruned(t *testing.T) {
	t.Parallel()
	w := newEnv(t, keepFile("hello", `"1"`))
	for i, name := range []string{
		"push-old-1", "push-old-2", "push-open", "push-unreported", "push-forgotten", "push-long-forgotten",
	} {
		p := w.pastEvent(name, 60*(i+1))
		delete(p.run.Labels, "pipelinesascode.tekton.dev/state")
		switch name {
		case "push-open":
			p.event.Status.Phase = ""
		case "push-unreported":
			p.event.Status.Unreported = true
		case "push-forgotten":
			p.event = nil
			p.run.CreationTimestamp.Time = w.clock.Now().Add(-7 * 24 * time.Hour)
		case "push-long-forgotten":
			p.event = nil
		}
		w.addPast(p)
	}
	for range 20 {
		_, _ = w.reconcile()
		w.finishOwnRuns()
		if w.settled() {
			break
		}
		w.advance(time.Minute)
	}
	if got := w.remainingRuns(); !w.settled() || got != "1 forgotten open unreported" {
		t.Errorf("settled %t, left are %q", w.settled(), got)
	}
}

// A policy that refuses every change of a run's Secret keeps no event open.
func TestEventSettlesDespiteRefusedSecrets(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	_, _ = w.reconcile()
	_, _ = w.reconcile()
	w.hook = func(_ int, call string) outcome {
		if call == "patch secrets" || call == "delete secrets" {
			return outcome{err: errDenied}
		}
		return outcome{}
	}
	began := w.clock.Now()
	for range 30 {
		w.finishRuns(corev1.ConditionTrue)
		_, _ = w.reconcile()
		if w.settled() {
			break
		}
		w.advance(5 * time.Minute)
	}
	if took := w.clock.Now().Sub(began); !w.settled() || took > 2*settle.SecretLimit || !w.event().Status.LateSecrets {
		t.Errorf("settled %t after %s, late secrets %t: %v", w.settled(), took, w.event().Status.LateSecrets, w.waits())
	}
	w.wantNoFailure()
}

// A run that is to be cancelled and cannot be keeps its event open for as long as it goes on,
// whatever else is refused: nobody forgets it.
func TestRefusedCancelIsRetried(t *testing.T) {
	t.Parallel()
	w := newEnv(t, helloFile("hello"))
	_, _ = w.reconcile()
	_, _ = w.reconcile()
	w.cancelled()
	w.hook = always("patch pipelineruns", errDenied)
	for range 10 {
		_, _ = w.reconcile()
		w.advance(time.Hour)
	}
	if w.settled() {
		t.Fatal("the event is settled, and nobody cancels its run any more")
	}
	w.hook = nil
	w.until(w.settled)
	if got := w.event().Status.Runs[0].Result; got == nil || got.Outcome != v1alpha1.OutcomeCancelled {
		t.Errorf("the run's result is %+v", got)
	}
}
