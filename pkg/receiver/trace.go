// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// traced starts the trace of a delivery. It is always a new one: a sender must not choose which
// trace its delivery is in, or that it is sampled. The function it returns ends the span.
func traced(ctx context.Context) (context.Context, func(result)) {
	ctx, span := otel.Tracer(meterName).Start(ctx, "accept", trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindServer))
	return ctx, func(done result) {
		span.SetAttributes(attribute.String("plumbline.provider", done.providerName()),
			attribute.String("plumbline.trigger", eventLabel(done.origin.Event)),
			attribute.String("plumbline.outcome", done.outcome), attribute.String("plumbline.reason", done.reason))
		if done.outcome == outcomeUnavailable {
			span.SetStatus(codes.Error, done.reason)
		}
		span.End()
	}
}
