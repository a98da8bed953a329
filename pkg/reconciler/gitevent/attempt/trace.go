// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/metrics"
	"github.com/plumbline-ci/plumbline/pkg/runtime/tracecontext"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// Traced runs one attempt of a step as a span of its delivery's trace. It records only the reason
// of a failure: messages are for people who may see them, not for all readers of traces.
func (a *Attempt) Traced(ctx context.Context, step string, do func(context.Context) error) error {
	ctx, span := otel.Tracer(metrics.Name).Start(tracecontext.With(ctx, a.Event.Annotations), metrics.KindOf(step),
		trace.WithAttributes(attribute.String("plumbline.event", a.Event.Name)))
	defer span.End()
	err := do(ctx)
	if f := fault.Of(err); f != nil {
		span.SetAttributes(attribute.String("plumbline.class", f.Class.String()))
		span.SetStatus(codes.Error, f.Reason)
	}
	return err
}

// TraceReport adds to the current span what is reported.
func TraceReport(ctx context.Context, check *status.Check) {
	trace.SpanFromContext(ctx).SetAttributes(
		attribute.String("plumbline.check", check.Key), attribute.String("plumbline.conclusion", string(check.Conclusion)))
}
