// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// callMetrics counts the calls of one Transport:
//
//   - plumbline.git.call.duration (seconds; provider, outcome): the outcome is "ok" or pkg/fault's
//     class. A 404 is "ok", because it is an answer.
//   - plumbline.git.failures (provider, class, reason): the calls whose outcome is a class.
type callMetrics struct {
	duration metric.Float64Histogram
	failures metric.Int64Counter
}

func newCallMetrics() callMetrics {
	meter := otel.Meter("github.com/plumbline-ci/plumbline/pkg/provider")
	duration, err := meter.Float64Histogram(
		"plumbline.git.call.duration",
		metric.WithUnit("s"),
		metric.WithDescription(
			"Duration of calls to Git services, by provider and outcome (ok, or the class of the failure)",
		),
		metric.WithExplicitBucketBoundaries(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30),
	)
	if err != nil {
		otel.Handle(err) // the instrument that comes with an error is safe to use and measures nothing
	}
	failures, err := meter.Int64Counter("plumbline.git.failures", metric.WithUnit("{call}"),
		metric.WithDescription("Calls that a Git service refused or did not answer, by provider, class and reason"))
	if err != nil {
		otel.Handle(err)
	}
	return callMetrics{duration: duration, failures: failures}
}

func (m callMetrics) observe(ctx context.Context, provider string, err error, took time.Duration) {
	outcome := "ok"
	f := fault.Of(err)
	if f != nil && f.Reason == fault.ReasonCanceled {
		return
	}
	if f != nil && f.Reason != fault.ReasonNotFound {
		outcome = f.Class.String()
		m.failures.Add(ctx, 1, metric.WithAttributes(attribute.String("provider", provider),
			attribute.String("class", outcome), attribute.String("reason", f.Reason)))
	}
	m.duration.Record(ctx, took.Seconds(),
		metric.WithAttributes(attribute.String("provider", provider), attribute.String("outcome", outcome)))
}
