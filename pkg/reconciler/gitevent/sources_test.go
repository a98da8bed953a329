// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// failingSources returns an env whose run has just failed in three steps. Their logs name 50, 50
// and 20 source lines.
func failingSources(t *testing.T) *env {
	t.Helper()
	w := newEnv(t, helloFile("hello"))
	w.git.annotates, w.git.annotations = true, map[string][]v1alpha1.SourceLine{}
	w.logs = sourceLogs(w.kube.CoreV1())
	_, _ = w.reconcile()
	w.failSteps("a", "b", "c")
	return w
}

func sourceLogs(kube corev1client.CoreV1Interface) *logsAnswer {
	return &logsAnswer{CoreV1Interface: kube, text: func(container string) string {
		n := map[string]int{"step-a": 50, "step-b": 50, "step-c": 20}[container]
		var log strings.Builder
		for line := range n {
			fmt.Fprintf(&log, "./%s.go:%d:1: wrong\n", container, line+1)
		}
		return log.String()
	}}
}

// wantAnnotations checks that one failed check has each of the annotations once.
func (w *env) wantAnnotations() {
	w.t.Helper()
	if len(w.git.checks) != 1 || w.check("hello").Conclusion != status.Failure {
		w.t.Errorf("checks are %+v, want one failure", w.git.checks)
	}
	known := map[v1alpha1.SourceLine]bool{}
	for _, line := range w.git.annotations["1"] {
		if known[line] || line.Message != "wrong" {
			w.t.Errorf("%+v is shown twice", line)
		}
		known[line] = true
	}
	if len(known) != 120 {
		w.t.Errorf("%d annotations, want 120", len(known))
	}
}

// As long as something else keeps the event unsettled, annotations that were sent or given up are
// not sent again, also not by another process.
func TestAnnotationsAreNotSentAgainBeforeTheEventSettles(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]error{
		"sent": nil, "given up": fault.Operatorf(fault.ReasonPermissionMissing, "403"),
	} {
		w := failingSources(t)
		w.hook = func(_ int, call string) outcome {
			switch call {
			case "count annotations":
				return outcome{err: refusal}
			case "patch pipelineruns":
				return outcome{err: errRefused}
			}
			return outcome{}
		}
		for range 3 {
			_, _ = w.reconcile()
			w.kill()
			w.advance(time.Minute)
		}
		if checks := w.event().Status.Checks; w.settled() || len(checks) != 1 || !checks[0].Annotated {
			t.Errorf("%s: settled %v, checks %+v, want an unsettled event and an annotated check", name, w.settled(), checks)
		}
		if n := w.count("count annotations"); n != 1 {
			t.Errorf("%s: annotations are sent %d times, want once", name, n)
		}
	}
}

func TestCheckGetsAnnotationsAfterItsConclusion(t *testing.T) {
	t.Parallel()
	w := failingSources(t)
	before := len(w.git.writes)
	_, _ = w.reconcile()
	w.wantAnnotations()
	if n := w.count("annotate"); n != 3 || len(w.git.writes) != before+1 || !w.settled() {
		t.Errorf("%d requests with annotations, %d reports, settled %v", n, len(w.git.writes)-before, w.settled())
	}
}

// Whatever call fails, is lost, or is the last before the process dies: each annotation is shown
// once.
func TestAnnotationsSurviveAnyFailedCall(t *testing.T) {
	t.Parallel()
	w := failingSources(t)
	first := len(w.calls)
	w.until(w.settled)
	ways := failures()
	delete(ways, "denied") // is not retried: TestRefusedAnnotationsAreGivenUp
	for kind, failure := range ways {
		for k := first + 1; k <= len(w.calls); k++ {
			call := w.calls[k-1]
			if failure.kill && (strings.HasPrefix(call, "list ") || call == "get secrets") {
				continue // made in the background: there a kill ends no process
			}
			t.Run(fmt.Sprintf("%s/call %d %s", kind, k, call), func(t *testing.T) {
				t.Parallel()
				failure := failure
				if failure.err != nil && strings.Contains(call, "annot") { // an answer of the Git service
					f := fault.Transientf(fault.ReasonGitUnreachable, "no answer")
					f.Unknown = true
					failure.err = f
				}
				w := failingSources(t)
				w.hook = func(n int, _ string) outcome {
					if n == k {
						return failure
					}
					return outcome{}
				}
				w.until(w.settled)
				w.wantAnnotations()
			})
		}
	}
}

// A request may take effect although its answer is lost: the next one waits until it no longer can.
func TestLostAnnotationsAreNotSentAgainTooEarly(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]outcome{
		"no answer": {err: &fault.Error{Class: fault.Transient, Reason: fault.ReasonGitUnreachable, Unknown: true}},
		"killed":    {kill: true},
	} {
		w := failingSources(t)
		n := 0
		w.hook = func(_ int, call string) outcome {
			if call != "annotate" {
				return outcome{}
			}
			if n++; n == 1 {
				return failure
			}
			return outcome{}
		}
		for range 3 {
			_, _ = w.reconcile()
			w.advance(10 * time.Second)
		}
		if n != 1 || w.settled() {
			t.Errorf("%s: %d requests within half a minute, settled %v", name, n, w.settled())
		}
		w.until(w.settled)
		w.wantAnnotations()
	}
}

// Annotations that the Git service refuses are given up; the verdict and the log are there.
func TestRefusedAnnotationsAreGivenUp(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err   error
		after time.Duration
	}{
		"refused":     {fault.Operatorf(fault.ReasonPermissionMissing, "403"), 0},
		"rejected":    {fault.Transientf(fault.ReasonGitRejected, "422"), 0},
		"unavailable": {fault.Transientf(fault.ReasonGitUnavailable, "502"), 10 * time.Minute},
		"odd":         {errors.New("odd"), 10 * time.Minute},
	} {
		w := failingSources(t)
		w.hook = always("annotate", test.err)
		began := w.clock.Now()
		_, _ = w.reconcile()
		if c := w.check("hello"); c.Conclusion != status.Failure || !strings.Contains(c.Text, "step-c.go:20") {
			t.Errorf("%s: %+v", name, c)
		}
		if test.after > 0 {
			w.until(w.settled)
		}
		if took := w.clock.Since(began); !w.settled() || took < test.after || took > test.after+10*time.Minute {
			t.Errorf("%s: settled %v after %s", name, w.settled(), took)
		}
	}
}

func TestSettingsOfAnnotations(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		settings map[string]string
		want     int
		shown    bool
	}{
		"off":              {map[string]string{"error-detection-from-container-logs": "false"}, 0, true},
		"without the log":  {map[string]string{"error-log-snippet": "false"}, 120, false},
		"the last 5 lines": {map[string]string{"error-detection-max-number-of-lines": "5"}, 15, true},
		"no line matches": {
			map[string]string{"error-detection-simple-regexp": "^(?P<filename>x)(?P<line>1)(?P<error>y)"}, 0, true,
		},
	} {
		w := failingSources(t)
		w.settings = test.settings
		w.until(w.settled)
		if n := len(w.git.annotations["1"]); n != test.want {
			t.Errorf("%s: %d annotations, want %d", name, n, test.want)
		}
		if c := w.check("hello"); strings.Contains(c.Text, "step-c.go") != test.shown || test.shown != (c.Log != "") {
			t.Errorf("%s: %s", name, c.Text)
		}
	}
}
