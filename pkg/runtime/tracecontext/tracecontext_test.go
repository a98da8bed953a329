// SPDX-License-Identifier: Apache-2.0

package tracecontext

import (
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// What one process stores is the parent in another; without tracing, or with an annotation that is
// none, there is no parent and nothing is stored.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	ctx, span := sdktrace.NewTracerProvider().Tracer("test").Start(t.Context(), "accept")
	defer span.End()
	stored := Annotations(ctx)
	parent := trace.SpanContextFromContext(With(t.Context(), stored))
	if parent.TraceID() != span.SpanContext().TraceID() || parent.SpanID() != span.SpanContext().SpanID() || !parent.IsSampled() {
		t.Errorf("stored %v: the parent is %v, want %v", stored, parent, span.SpanContext())
	}
	want := `{"traceparent":"00-` + span.SpanContext().TraceID().String() + "-" + span.SpanContext().SpanID().String() + `-01"}`
	if got := Tekton(stored); got != want {
		t.Errorf("Tekton is told %s, want %s", got, want)
	}
	if got := Annotations(t.Context()); got != nil {
		t.Errorf("without a span %v is stored", got)
	}
	if got := Tekton(nil); got != "" {
		t.Errorf("without a span Tekton is told %q", got)
	}
	for _, annotations := range []map[string]string{nil, {"plumbline.dev/traceparent": "00-nonsense"}} {
		if got := trace.SpanContextFromContext(With(t.Context(), annotations)); got.IsValid() {
			t.Errorf("%v names the parent %v", annotations, got)
		}
	}
}
