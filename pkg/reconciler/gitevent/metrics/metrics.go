// SPDX-License-Identifier: Apache-2.0

// Package metrics has the counters and gauges of the reconciler of GitEvents (docs/metrics.md).
package metrics

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// Name is the name of the meter and of the tracer.
const Name = "github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent"

// Metrics are the reconciler's counters; openevents.go has the gauges. knative adds those of the
// workqueue.
type Metrics struct {
	patchFailures metric.Int64Counter
	waits         metric.Int64Counter
	runs          metric.Int64Counter
	retried       metric.Int64Counter
	panics        metric.Int64Counter
	parkings      metric.Int64Counter
	drops         metric.Int64Counter
	full          metric.Int64Counter
	unrevoked     metric.Int64Counter
	unhandled     metric.Int64Counter
	noTurn        metric.Int64Counter
	held          metric.Int64Counter
	settled       metric.Int64Counter
	reached       metric.Float64Histogram
	reportDelay   metric.Float64Histogram
}

// New returns the counters of a process.
func New() *Metrics {
	meter := otel.Meter(Name)
	m := &Metrics{
		patchFailures: counter(meter, "plumbline.pipelinerun.patch.failures",
			"Patches of a PipelineRun's metadata that failed, by reason."),
		waits: counter(meter, "plumbline.gitevent.waits", "Steps that began to wait, by step, class and reason."),
		runs:  counter(meter, "plumbline.pipelinerun.created", "PipelineRuns created or adopted."),
		retried: counter(meter, "plumbline.pipelinerun.retried",
			"PipelineRuns that the cluster made fail and that another attempt replaces."),
		panics:   counter(meter, "plumbline.gitevent.panics", "Reconciles that panicked."),
		parkings: counter(meter, "plumbline.gitevent.parked", "Events given up because planning them panics."),
		unrevoked: counter(meter, "plumbline.token.unrevoked",
			"Tokens of runs that could not be revoked when their event settled; they end by themselves."),
		full: counter(meter, "plumbline.memory.full",
			"Attempts at events that were put off because others hold the memory for large ones."),
		drops: counter(meter, "plumbline.report.dropped", "Reports that were given up: the Git service never shows how a run ended."),
		unhandled: counter(meter, "plumbline.gitevent.unhandled",
			"Refusals that a step left without an answer: defects of Plumbline."),
		noTurn: counter(meter, "plumbline.gitevent.turns.refused",
			"Attempts that found a share of the workers taken, by share."),
		held: counter(meter, "plumbline.report.held",
			"Attempts to report that a pull request waits for approval that were put off, because strangers cause many."),
		settled: counter(meter, "plumbline.gitevent.settled", "Events settled, by disposition and reason."),
		reached: seconds(meter, "plumbline.gitevent.reached",
			"Time from a delivery's receipt until it was planned, created, a check of it first reported, settled."),
		reportDelay: seconds(meter, "plumbline.report.delay",
			"Time from the end of a PipelineRun until the Git service accepted it."),
	}
	for _, c := range []metric.Int64Counter{
		m.retried, m.panics, m.parkings, m.drops, m.unrevoked, m.unhandled, m.held, m.full,
	} {
		c.Add(context.Background(), 0) // a series that starts at its first event hides that event from increase()
	}
	return m
}

func counter(meter metric.Meter, name, description string) metric.Int64Counter {
	c, err := meter.Int64Counter(name, metric.WithDescription(description))
	if err != nil {
		otel.Handle(err) // the counter returned with an error counts nothing and is safe to use
	}
	return c
}

func seconds(meter metric.Meter, name, description string) metric.Float64Histogram {
	h, err := meter.Float64Histogram(name, metric.WithDescription(description), metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600))
	if err != nil {
		otel.Handle(err)
	}
	return h
}

// PatchFailed counts a patch of a PipelineRun's metadata that failed.
func (m *Metrics) PatchFailed(ctx context.Context, f *fault.Error) {
	m.patchFailures.Add(ctx, 1, metric.WithAttributes(attribute.String("reason", f.Reason)))
}

// Waiting counts a step that started to wait.
func (m *Metrics) Waiting(ctx context.Context, step, class, reason string) {
	m.waits.Add(ctx, 1, metric.WithAttributes(waitAttributes(waitKind{KindOf(step), class, reason})...))
}

// Unhandled counts a refusal that a step left without an answer.
func (m *Metrics) Unhandled() { m.unhandled.Add(context.Background(), 1) }

// NoSlot counts an attempt that found a share of the workers exhausted (fairqueue.Work and the
// others).
func (m *Metrics) NoSlot(share string) {
	m.noTurn.Add(context.Background(), 1, metric.WithAttributes(attribute.String("share", share)))
}

// Held counts a report about an untrusted user's pull request that was delayed.
func (m *Metrics) Held(ctx context.Context) { m.held.Add(ctx, 1) }

// Created counts a PipelineRun that was created or adopted.
func (m *Metrics) Created(ctx context.Context) { m.runs.Add(ctx, 1) }

// Retried counts a PipelineRun that another attempt replaces.
func (m *Metrics) Retried(ctx context.Context) { m.retried.Add(ctx, 1) }

// Panicked counts a reconcile that panicked.
func (m *Metrics) Panicked(ctx context.Context) { m.panics.Add(ctx, 1) }

// Parked counts an event that was given up because planning it panics.
func (m *Metrics) Parked(ctx context.Context) { m.parkings.Add(ctx, 1) }

// MemoryFull counts an attempt that was delayed because other events use the memory.
func (m *Metrics) MemoryFull() { m.full.Add(context.Background(), 1) }

// Dropped counts reports that were given up.
func (m *Metrics) Dropped(ctx context.Context, n int) { m.drops.Add(ctx, int64(n)) }

// Recorded measures what a status that was just written has reached since the one before.
func (m *Metrics) Recorded(
	ctx context.Context, before *v1alpha1.GitEventStatus, event *v1alpha1.GitEvent, now time.Time,
) {
	after := &event.Status
	for step, condition := range map[string]apis.ConditionType{
		"planned": v1alpha1.GitEventPlanned, "created": v1alpha1.GitEventCreated,
	} {
		if !before.GetCondition(condition).IsTrue() && after.GetCondition(condition).IsTrue() {
			m.reach(ctx, event, step, now)
		}
	}
	if after.Phase != v1alpha1.PhaseSettled {
		return
	}
	m.reach(ctx, event, "settled", now)
	reason := "none"
	if after.Plan != nil {
		reason = after.Plan.Reason
	}
	m.settled.Add(ctx, 1,
		metric.WithAttributes(attribute.String("disposition", string(after.Disposition)), attribute.String("reason", reason)))
}

// Accepted measures a report that the Git service has just accepted; before is the record of what
// it had accepted until then.
func (m *Metrics) Accepted(
	ctx context.Context, event *v1alpha1.GitEvent, before v1alpha1.Check, check *status.Check, now time.Time,
) {
	if before.Accepted == "" {
		m.reach(ctx, event, "reported", now)
	}
	if before.Concluded || check.Conclusion == "" {
		return
	}
	for i := range event.Status.Runs {
		run := &event.Status.Runs[i]
		if run.Key() == check.Key && run.Result != nil && run.Result.CompletedAt != nil {
			m.reportDelay.Record(ctx, now.Sub(run.Result.CompletedAt.Time).Seconds())
		}
	}
}

func (m *Metrics) reach(ctx context.Context, event *v1alpha1.GitEvent, step string, now time.Time) {
	m.reached.Record(ctx, now.Sub(event.Spec.ReceivedAt.Time).Seconds(),
		metric.WithAttributes(attribute.String("step", step)))
}

// Unrevoked counts tokens of runs that were left to expire.
func (m *Metrics) Unrevoked(ctx context.Context) { m.unrevoked.Add(ctx, 1) }
