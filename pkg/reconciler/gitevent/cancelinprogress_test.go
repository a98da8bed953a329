// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/supersede"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// commit returns the commit of the n-th push.
func commit(n int) string { return fmt.Sprintf("%040x", n) }

// pushes returns an env with n recorded pushes to main, one after the other, of a pipeline with
// this cancel-in-progress. The events are push-1, push-2 and so on; the last one is the branch's
// head.
func pushes(t *testing.T, count int, says string) *env {
	t.Helper()
	w := newEnv(t, annotated("hello", "cancel-in-progress: "+says))
	if says == "" {
		w = newEnv(t, helloFile("hello"))
	}
	w.git.tip = func(*v1alpha1.GitEventSpec) (string, error) { return commit(count), nil }
	for n := 1; n <= count; n++ {
		e := event()
		if n == 1 {
			e = w.event()
		}
		e.Name, e.UID, e.Spec.DeliveryKey, e.Spec.SHA = fmt.Sprint("push-", n), types.UID(fmt.Sprint("uid-of-", n)),
			fmt.Sprint(n), commit(n)
		if n > 1 {
			e.Spec.Before = commit(n - 1)
		}
		e.Spec.ReceivedAt = metav1.NewTime(w.clock.Now())
		if n == 1 {
			w.replaceEvent(e)
			continue
		}
		w.must(w.own.Tracker().Add(e))
	}
	return w
}

// annotations returns the pushes whose run was told to stop, or was not created and is cancelled,
// and those with a run that goes on.
func (w *env) annotations() (told, started string) {
	for _, e := range w.events() {
		for _, run := range e.Status.Runs {
			n := strings.TrimPrefix(e.Name, "push-")
			switch {
			case run.UID == "" && run.Result != nil:
				told += n
			case run.UID != "" && w.runOf(run.Name).Spec.Status == pipelinev1.PipelineRunSpecStatusCancelledRunFinally:
				told += n
			case run.UID != "":
				started += n
			}
		}
	}
	return told, started
}

func (w *env) runOf(name string) *pipelinev1.PipelineRun {
	for _, run := range w.runs() {
		if run.Name == name {
			return &run
		}
	}
	return &pipelinev1.PipelineRun{}
}

// The newer push stops the run of the previous one, whose check names the commit. Each of the two
// asks Git at most once, and the newest run goes on. Reconciled in the other order, the older one
// creates nothing.
func TestNewerPushStopsTheOlderRun(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]string{"in order": {"push-1", "push-2"}, "reversed": {"push-2", "push-1"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := pushes(t, 2, "'true'")
			for _, event := range append(order, "push-1", "push-1", "push-2") {
				_, _ = w.reconcileEvent(event)
				w.uncounted(func() *Reconciler { w.stopCancelledRuns(); return nil })
			}
			for range 3 {
				_, _ = w.reconcileEvent("push-1")
				w.advance(time.Second)
			}
			told, started := w.annotations()
			if told != "1" || started != "2" || w.count("ask tip") > 2 {
				t.Errorf("told to end: %q, going on: %q, after %d questions", told, started, w.count("ask tip"))
			}
			said := ""
			for _, check := range w.git.checks {
				if check.Conclusion != "" {
					said += fmt.Sprintf("%s %s", check.Conclusion, check.Text)
				}
			}
			if !strings.HasPrefix(said, string(status.Cancelled)) || !strings.Contains(said, "superseded by "+commit(2)) ||
				!w.eventNamed("push-1").Settled() {
				t.Errorf("the check says %q, %+v", said, w.eventNamed("push-1").Status)
			}
			// A later event asks a settled event whether its run stopped others, and an unsettled
			// one since when its commit is known.
			settled, open := w.eventNamed("push-1").Status, w.eventNamed("push-2").Status
			if !settled.Runs[0].CancelInProgress || settled.Plan.At == nil || open.Plan.At == nil {
				t.Errorf("a settled event keeps %+v, an open one's plan is of %v", settled.Runs[0], open.Plan.At)
			}
		})
	}
}

// Without the annotation, with false, or with an invalid value, nothing is cancelled and no call is
// made. The installation may set the default. An invalid value is reported once, in the decision
// and as a Kubernetes Event.
func TestCancelInProgressValues(t *testing.T) {
	t.Parallel()
	on := map[string]string{"enable-cancel-in-progress-on-push": "true"}
	for name, test := range map[string]struct {
		says     string
		settings map[string]string
		told     string
		words    string
	}{
		"true":                     {"'true'", nil, "1", ""},
		"false":                    {"'false'", on, "", ""},
		"nothing":                  {"", nil, "", ""},
		"nothing, and the default": {"", on, "1", ""},
		"of pull requests only":    {"", map[string]string{"enable-cancel-in-progress-on-pull-requests": "true"}, "", ""},
		"yes":                      {"'yes'", on, "", `cancel-in-progress is "yes", which is neither true nor false`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := pushes(t, 2, test.says)
			w.settings = test.settings
			for _, event := range []string{"push-1", "push-2", "push-1", "push-2"} {
				_, _ = w.reconcileEvent(event)
			}
			told, _ := w.annotations()
			reason := w.eventNamed("push-2").Status.Plan.Decisions[0].Reason
			if told != test.told || strings.Contains(reason, test.words) != true ||
				test.words == "" && strings.Contains(reason, "neither") {
				t.Errorf("told to end: %q, want %q; the decision is %q", told, test.told, reason)
			}
			if asked := w.count("ask tip"); (asked > 0) != (test.told != "") {
				t.Errorf("%d questions", asked)
			}
		})
	}
}

// A single push with the annotation, and pushes whose runs are finished, cost no calls.
func TestUsualPushMakesNoCallsAboutOthers(t *testing.T) {
	t.Parallel()
	calls := map[string][]string{}
	for _, says := range []string{"'true'", "'false'"} {
		w := pushes(t, 1, says)
		w.settle("True")
		w.wantSuccess()
		calls[says] = w.calls
	}
	if more := len(calls["'true'"]) - len(calls["'false'"]); more != 0 {
		t.Errorf("%d calls more", more)
	}
}

// With a limit of one run, the newer run waits for the slot of the older one, which is stopped at
// once.
func TestOlderRunStopsWhileTheNewerOneIsQueued(t *testing.T) {
	t.Parallel()
	w := pushes(t, 2, "'true'")
	_, _ = w.reconcileEvent("push-1")
	w.slots(pacv1alpha1.Slot{Run: w.eventNamed("push-1").Status.Runs[0].Name, Event: "push-1"})
	_, _ = w.reconcileEvent("push-2")
	_, _ = w.reconcileEvent("push-1")
	if told, started := w.annotations(); told != "1" || started != "" {
		t.Errorf("told to end: %q, going on: %q", told, started)
	}
	w.slots(pacv1alpha1.Slot{Run: w.eventNamed("push-2").Status.Runs[0].Name, Event: "push-2"})
	_, _ = w.reconcileEvent("push-2")
	if told, started := w.annotations(); told != "1" || started != "2" {
		t.Errorf("with a slot: told to end: %q, going on: %q", told, started)
	}
}

// A newer run that the API server refuses because of its author's mistake stops nothing.
func TestRefusedRunStopsNothing(t *testing.T) {
	t.Parallel()
	w := pushes(t, 2, "'true'")
	_, _ = w.reconcileEvent("push-1")
	w.hook = always("create pipelineruns", errDenied)
	for range 3 {
		_, _ = w.reconcileEvent("push-2")
	}
	w.hook = nil
	_, _ = w.reconcileEvent("push-1")
	if told, started := w.annotations(); told != "" || started != "1" ||
		w.eventNamed("push-2").Status.Runs[0].Refused == nil {
		t.Errorf("told to end: %q, going on: %q", told, started)
	}
}

// While Git cannot be asked, no run is stopped and no older run is created; then it goes on.
func TestUnknownOrderStopsNothing(t *testing.T) {
	t.Parallel()
	w := pushes(t, 2, "'true'")
	tip := w.git.tip
	w.git.tip = func(*v1alpha1.GitEventSpec) (string, error) {
		return "", fault.Transientf(fault.ReasonGitUnavailable, "502")
	}
	for range 3 {
		for _, event := range []string{"push-2", "push-1"} {
			_, _ = w.reconcileEvent(event)
			w.advance(time.Minute)
		}
	}
	if told, started := w.annotations(); told != "" || started != "2" {
		t.Errorf("told to end: %q, going on: %q", told, started)
	}
	w.git.tip = tip
	for range 4 {
		_, _ = w.reconcileEvent("push-2")
		_, _ = w.reconcileEvent("push-1")
		w.advance(time.Minute)
	}
	if told, started := w.annotations(); told != "1" || started != "2" {
		t.Errorf("then told to end: %q, going on: %q", told, started)
	}
}

// Only a pipeline waits of which Git does not say whether a newer commit has it, too. If Git
// refuses to answer for long, both runs go on, and the wait says so. When Git answers, the older
// one is stopped.
func TestOnlyContestedPipelinesWaitForTheOrder(t *testing.T) {
	t.Parallel()
	w := pushes(t, 2, "'true'")
	w.git.files = append(w.git.files, helloFile("lint"))
	tip := w.git.tip
	w.git.tip = func(*v1alpha1.GitEventSpec) (string, error) { return "", fault.Operatorf(fault.ReasonForbidden, "403") }
	_, _ = w.reconcileEvent("push-2")
	created := func() (names []string) {
		_, _ = w.reconcileEvent("push-1")
		for _, run := range w.eventNamed("push-1").Status.Runs {
			if run.UID != "" {
				names = append(names, run.Pipeline)
			}
		}
		return names
	}
	for waited := time.Duration(0); waited < supersede.GuessAfter; waited += time.Minute {
		if got := created(); !slices.Equal(got, []string{"lint"}) {
			t.Fatalf("after %s %v are created: %+v", waited, got, w.eventNamed("push-1").Status.Waits)
		}
		w.advance(time.Minute)
	}
	if says := w.eventNamed("push-1").Status.Waits[0]; says.Step != v1alpha1.StepSupersede ||
		!strings.Contains(says.Message, "after 10m0s both go on") {
		t.Errorf("it waits for %+v", says)
	}
	if got := created(); len(got) != 2 {
		t.Errorf("after that %v are created", got)
	}
	w.git.tip = tip
	w.advance(time.Hour)
	_ = created()
	if told, started := w.annotations(); told != "1" || started != "122" {
		t.Errorf("then told to end: %q, going on: %q", told, started)
	}
}

// A late push does not run if the newest commit has run the pipeline, and runs if it has not. A
// refused patch is retried until the older event has the annotation.
