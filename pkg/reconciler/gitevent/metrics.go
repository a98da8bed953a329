// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// metrics are this reconciler's counters; knative adds the workqueue's and the API client's.
type metrics struct {
	patchFailures metric.Int64Counter
	waits         metric.Int64Counter
	runs          metric.Int64Counter
	panics        metric.Int64Counter
	parkings      metric.Int64Counter
}

func newMetrics() *metrics {
	meter := otel.Meter("github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent")
	return &metrics{
		patchFailures: counter(meter, "plumbline.pipelinerun.patch.failures", "Patches of a PipelineRun's metadata that failed, by reason."),
		waits:         counter(meter, "plumbline.gitevent.waits", "Steps that began to wait, by step, class and reason."),
		runs:          counter(meter, "plumbline.pipelinerun.created", "PipelineRuns created or adopted."),
		panics:        counter(meter, "plumbline.gitevent.panics", "Reconciles that panicked."),
		parkings:      counter(meter, "plumbline.gitevent.parked", "Events given up because planning them panics."),
	}
}

func counter(meter metric.Meter, name, description string) metric.Int64Counter {
	c, err := meter.Int64Counter(name, metric.WithDescription(description))
	if err != nil {
		otel.Handle(err) // the counter returned with an error counts nothing and is safe to use
	}
	return c
}

func (m *metrics) patchFailed(ctx context.Context, f *fault.Error) {
	m.patchFailures.Add(ctx, 1, metric.WithAttributes(attribute.String("reason", f.Reason)))
}

func (m *metrics) waiting(ctx context.Context, step, class, reason string) {
	kind, _, _ := strings.Cut(step, "/") // without the run's name, which would be a label without bound
	m.waits.Add(ctx, 1, metric.WithAttributes(attribute.String("step", kind), attribute.String("class", class), attribute.String("reason", reason)))
}

func (m *metrics) created(ctx context.Context)  { m.runs.Add(ctx, 1) }
func (m *metrics) panicked(ctx context.Context) { m.panics.Add(ctx, 1) }
func (m *metrics) parked(ctx context.Context)   { m.parkings.Add(ctx, 1) }
