// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/prune"
)

// Whatever call fails, is lost, or is the last before the process dies, the two runs that were
// completed last are left, and each deletion names the object that was read.
func TestPruningSurvivesAnyFailedCall(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T) *env {
		w := newEnv(t, keepFile("hello", `"2"`))
		w.history(4)
		w.tekton.PrependReactor("delete", "pipelineruns", func(action clienttesting.Action) (bool, k8sruntime.Object, error) {
			deleted, _ := action.(clienttesting.DeleteActionImpl)
			if p := deleted.DeleteOptions.Preconditions; p == nil || p.UID == nil ||
				!strings.HasPrefix(string(*p.UID), "run-of-push-old-") {
				t.Errorf("%s is deleted whatever it is", deleted.Name)
			}
			return false, nil, nil
		})
		return w
	}
	free := begin(t)
	free.settle(corev1.ConditionTrue)
	first := slices.Index(free.calls, "list pipelineruns") + 1
	if first == 0 {
		t.Fatal("nothing is listed")
	}
	for kind, fault := range map[string]outcome{
		"refused": {err: errRefused}, "denied": {err: errDenied}, "conflict": {err: errConflict},
		"throttled": {err: errThrottled},
		"applied":   {err: errRefused, apply: true}, "killed before": {kill: true}, "killed after": {kill: true, apply: true},
	} {
		for k := first; k <= len(free.calls); k++ {
			t.Run(fmt.Sprintf("%s/call %d %s", kind, k, free.calls[k-1]), func(t *testing.T) {
				t.Parallel()
				w := begin(t)
				w.hook = func(n int, _ string) outcome {
					if n == k {
						return fault
					}
					return outcome{}
				}
				w.settle(corev1.ConditionTrue)
				if got := w.remainingRuns(); got != "1 old-1" {
					t.Errorf("left are %q", got)
				}
				w.wantNoFailure()
			})
		}
	}
}

func (w *env) wantNoFailure() {
	w.t.Helper()
	for _, check := range w.git.writes {
		if check.Conclusion != "" && check.Conclusion != "success" {
			w.t.Errorf("a write said %s: %s", check.Conclusion, check.Text)
		}
	}
}

// One refused deletion stops none of the others, adds one warning to the Repository, and is given
// up after an hour: the event settles.
func TestRefusedDeletionIsGivenUp(t *testing.T) {
	t.Parallel()
	w := newEnv(t, keepFile("hello", `"1"`))
	w.history(3)
	kept := w.pastEvent("push-old-2", 0).run
	w.asked = func(action clienttesting.Action) error {
		if deleted, is := action.(clienttesting.DeleteActionImpl); is && deleted.Name == kept.Name {
			return errDenied
		}
		return nil
	}
	var told []string
	began := w.clock.Now()
	for range 40 {
		_ = w.reconcileTelling(&told)
		w.finishRuns(corev1.ConditionTrue)
		if e := w.event(); e.Settled() {
			break
		} else if wait := e.Status.Waits; len(wait) > 0 &&
			(wait[0].Reason != prune.ReasonNotPruned || e.Status.Outcome != "Succeeded") {
			t.Fatalf("outcome %q, waits %+v", e.Status.Outcome, wait)
		}
		w.advance(5 * time.Minute)
	}
	if took := w.clock.Since(began); !w.event().Settled() || took < prune.GiveUp || took > 2*prune.GiveUp {
		t.Errorf("settled %v after %v", w.event().Settled(), took)
	}
	if got := w.remainingRuns(); got != "1 old-2" {
		t.Errorf("left are %q, want what could not be deleted and the last", got)
	}
	if len(told) != 1 || !strings.Contains(told[0], "NotPruned") || !strings.Contains(told[0], errDenied.Error()) {
		t.Errorf("told is %q", told)
	}
}

// A later event of the pipeline deletes what is refused now, so an event does not stay unsettled
// for it. Otherwise a thousand would, and the deliveries of a busy Repository would be answered
// 503. An earlier event, one of another pipeline, or one that keeps all runs would not delete it.
func TestRefusedDeletionIsLeftToALaterEvent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settles bool
		change  func(later *v1alpha1.GitEvent)
	}{
		"a later event":      {true, func(*v1alpha1.GitEvent) {}},
		"one of that second": {true, func(e *v1alpha1.GitEvent) { e.Spec.ReceivedAt = event().Spec.ReceivedAt }},
		"an earlier one": {
			false, func(e *v1alpha1.GitEvent) { e.Spec.ReceivedAt.Time = e.Spec.ReceivedAt.Add(-time.Hour) },
		},
		"it is settled":        {false, func(e *v1alpha1.GitEvent) { e.Status.Phase = v1alpha1.PhaseSettled }},
		"another pipeline":     {false, func(e *v1alpha1.GitEvent) { e.Status.Runs[0].Pipeline = "other" }},
		"it keeps all":         {false, func(e *v1alpha1.GitEvent) { e.Status.Runs[0].MaxKeepRuns = nil }},
		"it is not created":    {false, func(e *v1alpha1.GitEvent) { e.Status.Runs[0].UID = "" }},
		"another Repository's": {false, func(e *v1alpha1.GitEvent) { e.Spec.Repository.Name = "other" }},
		"of one of that name":  {false, func(e *v1alpha1.GitEvent) { e.Spec.Repository.UID = "another" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, keepFile("hello", `"1"`))
			w.history(3)
			keep := int64(1)
			later := event()
			later.Name, later.UID, later.Spec.ReceivedAt.Time = "push-2", "uid-of-push-2", later.Spec.ReceivedAt.Add(time.Minute)
			later.Status = v1alpha1.GitEventStatus{Plan: &v1alpha1.Plan{},
				Runs: []v1alpha1.Run{{Pipeline: "hello", Namespace: tenant, Name: "hello-2", UID: "2", MaxKeepRuns: &keep}}}
			c.change(later)
			w.must(w.own.Tracker().Add(later))
			w.hook = always("delete pipelineruns", errDenied)
			for range 8 {
				_, _ = w.reconcile()
				w.finishRuns(corev1.ConditionTrue)
			}
			if w.event().Settled() != c.settles || w.count("delete pipelineruns") == 0 {
				t.Errorf("settled is %v, want %v; it waits for %+v", w.event().Settled(), c.settles, w.event().Status.Waits)
			}
		})
	}
}

// Pruning reads nothing twice: a pipeline whose runs were read costs a list and a deletion.
func TestPruningReadsARunOnce(t *testing.T) {
	t.Parallel()
	w := newEnv(t, keepFile("hello", `"3"`))
	w.history(3)
	refuse := errors.New("not now")
	w.hook = always("delete pipelineruns", refuse)
	for range 6 {
		_, _ = w.reconcile()
		w.finishRuns(corev1.ConditionTrue)
		w.advance(time.Minute)
	}
	w.hook, w.calls = nil, nil
	_, _ = w.reconcile()
	if w.count("list pipelineruns") != 2 || w.count("get gitevents") > 1 || w.count("delete pipelineruns") != 1 {
		t.Errorf("calls %v: want two pages, one read that confirms the event, one delete", w.calls)
	}
	// of more than that none would be deleted
	for _, file := range []git.File{helloFile("hello"), keepFile("hello", `"10000"`)} {
		free := newEnv(t, file)
		free.history(3)
		free.settle(corev1.ConditionTrue)
		if free.count("list pipelineruns") != 0 {
			t.Error("runs are listed although all of them are kept")
		}
	}
}

// Somebody labels hundreds of PipelineRuns as finished runs of an unsettled event. Each event that
// prunes reads only a few of them, because all tenants share the calls, and known runs are deleted
// as usual.
func TestFruitlessRunsCostFewReads(t *testing.T) {
	t.Parallel()
	w := newEnv(t, keepFile("hello", `"1"`))
	open := w.pastEvent("push-open", 30)
	open.event.Status.Phase = ""
	w.addPast(open)
	for i := range 400 {
		copied := open.run.DeepCopy()
		copied.Name, copied.UID = fmt.Sprint("copy-", i), types.UID(fmt.Sprint("copy-", i))
		w.must(w.tekton.Tracker().Add(copied))
	}
	w.settle(corev1.ConditionTrue)
	if n := w.count("get gitevents"); n > 60 || len(w.runs()) != 402 {
		t.Errorf("%d events are read, %d runs are left", n, len(w.runs()))
	}
}
