// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// traced begins the trace of a delivery: a new one, because who sends a delivery must not choose
// whose trace it is in or that it is kept. The function it returns ends the span.
func traced(ctx context.Context) (context.Context, func(*delivery, answer)) {
	ctx, span := otel.Tracer(meterName).Start(ctx, "accept", trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindServer))
	return ctx, func(d *delivery, a answer) {
		span.SetAttributes(
			attribute.String("plumbline.provider", d.providerName()),
			attribute.String("plumbline.trigger", eventLabel(d.origin.Event)),
			attribute.String("plumbline.outcome", a.outcome),
			attribute.String("plumbline.reason", a.reason),
		)
		if a.outcome == outcomeUnavailable {
			span.SetStatus(codes.Error, a.reason)
		}
		span.End()
	}
}
