// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/fairqueue"
)

// The steps of unsettled events, as plumbline.gitevent.open and .oldest show them.
const (
	doingPlan     = "plan"     // since it was received
	doingCreate   = "create"   // since it was planned
	doingQueue    = "queue"    // waits only for slots of its Repository, since it was planned
	doingRun      = "run"      // the runs exist, since they were created
	doingReport   = "report"   // since the last run finished
	doingAnnotate = "annotate" // since then
	doingSettle   = "settle"   // since everything was done
)

// gauges show the unsettled events in this process's cache. Every replica has all of them and shows
// the same: use max, not sum.
type gauges struct {
	open, waiting, outstanding metric.Int64ObservableGauge
	oldest, outstandingOldest  metric.Float64ObservableGauge
}

// Lister is the cache of the unsettled events.
type Lister interface {
	List(selector labels.Selector) ([]*v1alpha1.GitEvent, error)
}

// ObserveOpen registers
//   - plumbline.gitevent.open (step): the unsettled events, by the step that they are at;
//   - plumbline.gitevent.oldest (seconds; step): the age of the oldest of them;
//   - plumbline.gitevent.waiting (step, class, reason): steps that wait now;
//   - plumbline.report.outstanding and .oldest (seconds): finished runs whose result the Git
//     service has not accepted, and events whose report waits.
func ObserveOpen(open Lister, clock clock.PassiveClock) error {
	meter := otel.Meter(Name)
	var g gauges
	var errs [5]error
	g.open, errs[0] = meter.Int64ObservableGauge("plumbline.gitevent.open", metric.WithUnit("{event}"),
		metric.WithDescription("Events that are not settled, by what they are doing"))
	g.oldest, errs[1] = meter.Float64ObservableGauge("plumbline.gitevent.oldest", metric.WithUnit("s"),
		metric.WithDescription("For how long an event has been at a step, the longest"))
	g.waiting, errs[2] = meter.Int64ObservableGauge("plumbline.gitevent.waiting", metric.WithUnit("{event}"),
		metric.WithDescription("Steps of events that wait now, by step, class and reason"))
	g.outstanding, errs[3] = meter.Int64ObservableGauge("plumbline.report.outstanding", metric.WithUnit("{report}"),
		metric.WithDescription("Reports that the Git service has not accepted yet"))
	g.outstandingOldest, errs[4] = meter.Float64ObservableGauge("plumbline.report.oldest", metric.WithUnit("s"),
		metric.WithDescription("For how long a report has not been accepted, the longest"))
	if err := errors.Join(errs[:]...); err != nil {
		return fmt.Errorf("making the gauges of open events: %w", err)
	}
	_, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		events, err := open.List(labels.Everything())
		if err != nil {
			return err
		}
		g.observe(o, summarize(events, clock.Now()))
		return nil
	}, g.open, g.oldest, g.waiting, g.outstanding, g.outstandingOldest)
	return err
}

// ObserveQueues registers plumbline.gitevent.turns.waiting (share): events that wait in a queue of
// this process, by the share of the workers that was exhausted (fairqueue.Work and the others).
func ObserveQueues(waiting func() map[string]int) error {
	meter := otel.Meter(Name)
	gauge, err := meter.Int64ObservableGauge("plumbline.gitevent.turns.waiting", metric.WithUnit("{event}"),
		metric.WithDescription("Events that stand in a line for a turn, by the share of which each found none"))
	if err != nil {
		return fmt.Errorf("making the gauge of the lines: %w", err)
	}
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		now := waiting()
		for _, share := range fairqueue.LimitNames() { // an empty queue is a zero, not a gap
			o.ObserveInt64(gauge, int64(now[share]), metric.WithAttributes(attribute.String("share", share)))
		}
		return nil
	}, gauge)
	return err
}

// waitKind has the labels of plumbline.gitevent.waiting.
type waitKind struct{ step, class, reason string }

// summary is what the gauges show.
type summary struct {
	open              map[string]int
	oldest            map[string]time.Duration
	waiting           map[waitKind]int
	outstanding       int
	outstandingOldest time.Duration
}

func summarize(events []*v1alpha1.GitEvent, now time.Time) summary {
	s := summary{open: map[string]int{}, oldest: map[string]time.Duration{}, waiting: map[waitKind]int{}}
	for _, step := range []string{doingPlan, doingCreate, doingQueue, doingRun, doingReport, doingAnnotate, doingSettle} {
		s.open[step], s.oldest[step] = 0, 0 // a step without events is a zero, not a gap
	}
	for _, event := range events {
		step, since := currentStep(event)
		s.open[step]++
		s.oldest[step] = max(s.oldest[step], now.Sub(since))
		for _, wait := range event.Status.Waits {
			s.waiting[waitKind{KindOf(wait.Step), wait.Class, wait.Reason}]++
		}
		n, since := unreported(event)
		s.outstanding += n
		if n > 0 {
			s.outstandingOldest = max(s.outstandingOldest, now.Sub(since))
		}
	}
	return s
}

func (g *gauges) observe(o metric.Observer, s summary) {
	for step, n := range s.open {
		o.ObserveInt64(g.open, int64(n), metric.WithAttributes(attribute.String("step", step)))
		o.ObserveFloat64(g.oldest, s.oldest[step].Seconds(), metric.WithAttributes(attribute.String("step", step)))
	}
	for kind, n := range s.waiting {
		o.ObserveInt64(g.waiting, int64(n), metric.WithAttributes(waitAttributes(kind)...))
	}
	o.ObserveInt64(g.outstanding, int64(s.outstanding))
	o.ObserveFloat64(g.outstandingOldest, s.outstandingOldest.Seconds())
}

func waitAttributes(k waitKind) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("step", k.step),
		attribute.String("class", k.class),
		attribute.String("reason", k.reason),
	}
}

// KindOf returns a step without the run's name, which would be an unbounded label.
func KindOf(step string) string {
	kind, _, _ := strings.Cut(step, "/")
	return kind
}

// currentStep returns the step of an unsettled event and since when it is there.
func currentStep(event *v1alpha1.GitEvent) (step string, since time.Time) {
	s := &event.Status
	planned, created := s.GetCondition(v1alpha1.GitEventPlanned), s.GetCondition(v1alpha1.GitEventCreated)
	switch {
	case !planned.IsTrue():
		return doingPlan, event.Spec.ReceivedAt.Time
	case !created.IsTrue() && queues(s):
		return doingQueue, planned.LastTransitionTime.Inner.Time
	case !created.IsTrue():
		return doingCreate, planned.LastTransitionTime.Inner.Time
	}
	for i := range s.Runs {
		if run := &s.Runs[i]; run.Result == nil && run.Refused == nil {
			return doingRun, created.LastTransitionTime.Inner.Time
		}
	}
	since = lastEnd(s, created.LastTransitionTime.Inner.Time)
	if n, from := unreported(event); n > 0 {
		return doingReport, from
	}
	if !s.GetCondition(v1alpha1.GitEventAnnotated).IsTrue() {
		return doingAnnotate, since
	}
	return doingSettle, since
}

// queues reports whether all runs that an event has not created wait for a slot.
func queues(s *v1alpha1.GitEventStatus) bool {
	waits := map[string]bool{}
	for _, wait := range s.Waits {
		waits[wait.Step] = wait.Reason == fault.ReasonConcurrencyLimit
	}
	queued := false
	for i := range s.Runs {
		if run := &s.Runs[i]; run.UID == "" && run.Refused == nil && run.Result == nil {
			if queued = true; !waits[v1alpha1.StepCreate+run.Name] {
				return false
			}
		}
	}
	return queued
}

// unreported counts the results of runs that the Git service has not accepted. An event whose
// report waits counts at least once. since is when the first of them was known.
func unreported(event *v1alpha1.GitEvent) (n int, since time.Time) {
	s := &event.Status
	concluded := map[string]bool{}
	for _, check := range s.Checks {
		concluded[check.Key] = check.Concluded
	}
	planned := event.Spec.ReceivedAt.Time
	if condition := s.GetCondition(v1alpha1.GitEventPlanned); condition.IsTrue() {
		planned = condition.LastTransitionTime.Inner.Time
	}
	note := func(at time.Time) {
		if n++; since.IsZero() || at.Before(since) {
			since = at
		}
	}
	for i := range s.Runs {
		run := &s.Runs[i]
		if concluded[run.Key()] || (run.Result == nil && run.Refused == nil) {
			continue
		}
		note(endOf(run, planned))
	}
	for _, wait := range s.Waits {
		if wait.Step == v1alpha1.StepReport && n == 0 {
			note(wait.Since.Time)
		}
	}
	return n, since
}

// lastEnd returns when the last run finished, created if no run says so.
func lastEnd(s *v1alpha1.GitEventStatus, created time.Time) time.Time {
	last := created
	for i := range s.Runs {
		if at := endOf(&s.Runs[i], created); at.After(last) {
			last = at
		}
	}
	return last
}

// endOf returns when a run finished. A run that was refused or deleted has no such time: endOf then
// returns its argument.
func endOf(run *v1alpha1.Run, otherwise time.Time) time.Time {
	if run.Result == nil || run.Result.CompletedAt == nil {
		return otherwise
	}
	return run.Result.CompletedAt.Time
}
