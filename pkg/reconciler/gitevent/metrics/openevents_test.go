// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/store/gitevents"
)

// An unsettled event is at one step, since the time in its status. If its report waits it counts as
// outstanding.
func TestCurrentStep(t *testing.T) {
	t.Parallel()
	at := func(minute int) metav1.Time { return metav1.NewTime(time.Date(2026, 1, 1, 12, minute, 0, 0, time.UTC)) }
	done := func(step apis.ConditionType, minute int) func(*v1alpha1.GitEventStatus) {
		return func(s *v1alpha1.GitEventStatus) {
			s.Conditions = append(s.Conditions,
				apis.Condition{Type: step, Status: corev1.ConditionTrue, LastTransitionTime: apis.VolatileTime{Inner: at(minute)}})
		}
	}
	planned, created := done(v1alpha1.GitEventPlanned, 1), done(v1alpha1.GitEventCreated, 2)
	annotated := done(v1alpha1.GitEventAnnotated, 2)
	run := func(name string, ended int) func(*v1alpha1.GitEventStatus) {
		return func(s *v1alpha1.GitEventStatus) {
			r := v1alpha1.Run{Name: name}
			if ended > 0 {
				end := at(ended)
				r.Result = &v1alpha1.Result{CompletedAt: &end}
			}
			s.Runs = append(s.Runs, r)
		}
	}
	check := func(name string, concluded bool) func(*v1alpha1.GitEventStatus) {
		return func(s *v1alpha1.GitEventStatus) {
			s.Checks = append(s.Checks, v1alpha1.Check{Key: name, Accepted: "x", Concluded: concluded})
		}
	}
	waits := func(step string, minute int) func(*v1alpha1.GitEventStatus) {
		return func(s *v1alpha1.GitEventStatus) {
			s.Waits = append(s.Waits, v1alpha1.Wait{Step: step, Class: "Transient", Reason: "Timeout", Since: at(minute)})
		}
	}
	queued := func(name string) func(*v1alpha1.GitEventStatus) {
		return func(s *v1alpha1.GitEventStatus) {
			s.Waits = append(s.Waits, v1alpha1.Wait{
				Step: v1alpha1.StepCreate + name, Class: "Throttled", Reason: "ConcurrencyLimit", Since: at(2),
			})
		}
	}
	cases := []struct {
		sentence    string
		status      []func(*v1alpha1.GitEventStatus)
		step        string
		since       int
		outstanding int
		reportSince int
	}{
		{"it was received", nil, doingPlan, 0, 0, 0},
		{"it is planned", []func(*v1alpha1.GitEventStatus){planned, run("a", 0)}, doingCreate, 1, 0, 0},
		{"all that is left waits for a slot", []func(*v1alpha1.GitEventStatus){
			planned, run("a", 3), run("b", 0), check("a", true), queued("b"),
		}, doingQueue, 1, 0, 0},
		{"one waits for a slot, and another one for something else",
			[]func(*v1alpha1.GitEventStatus){planned, run("a", 0), run("b", 0), queued("b")}, doingCreate, 1, 0, 0},
		{"a run goes on", []func(*v1alpha1.GitEventStatus){planned, created, run("a", 3), run("b", 0), check("a", true)},
			doingRun, 2, 0, 0},
		{"a run goes on and its report waits",
			[]func(*v1alpha1.GitEventStatus){planned, created, run("a", 0), waits(v1alpha1.StepReport, 3)}, doingRun, 2, 1, 3},
		{"runs ended and one end is not accepted", []func(*v1alpha1.GitEventStatus){
			planned, created, run("a", 3), run("b", 5), check("a", true), check("b", false),
		}, doingReport, 5, 1, 5},
		{"the report waits after the end", []func(*v1alpha1.GitEventStatus){
			planned, created, run("a", 3), waits(v1alpha1.StepReport, 4),
		}, doingReport, 3, 1, 3},
		{"all is reported and a run is not patched", []func(*v1alpha1.GitEventStatus){
			planned, created, run("a", 3), check("a", true), waits(v1alpha1.StepAnnotate, 4),
		}, doingAnnotate, 3, 0, 0},
		{"all is done", []func(*v1alpha1.GitEventStatus){planned, created, annotated, run("a", 3), check("a", true)},
			doingSettle, 3, 0, 0},
		{"there was nothing to do", []func(*v1alpha1.GitEventStatus){planned, created, annotated}, doingSettle, 2, 0, 0},
	}
	for _, c := range cases {
		t.Run(c.sentence, func(t *testing.T) {
			t.Parallel()
			event := &v1alpha1.GitEvent{Spec: v1alpha1.GitEventSpec{ReceivedAt: at(0)}}
			for _, change := range c.status {
				change(&event.Status)
			}
			now := at(30).Time
			got := summarize([]*v1alpha1.GitEvent{gitevents.Trim(event)}, now)
			want := summary{
				open: map[string]int{}, oldest: map[string]time.Duration{}, waiting: map[waitKind]int{}, outstanding: c.outstanding,
			}
			for _, step := range []string{doingPlan, doingCreate, doingQueue, doingRun, doingReport, doingAnnotate,
				doingSettle} {
				want.open[step], want.oldest[step] = 0, 0
			}
			want.open[c.step], want.oldest[c.step] = 1, now.Sub(at(c.since).Time)
			if c.outstanding > 0 {
				want.outstandingOldest = now.Sub(at(c.reportSince).Time)
			}
			for _, wait := range event.Status.Waits {
				want.waiting[waitKind{KindOf(wait.Step), wait.Class, wait.Reason}] = 1
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(summary{}, waitKind{})); diff != "" {
				t.Error("summary (-want +got):", diff)
			}
		})
	}
}
