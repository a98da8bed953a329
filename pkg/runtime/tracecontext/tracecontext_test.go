// SPDX-License-Identifier: Apache-2.0

package tracecontext

import (
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// The span that one process stores is the parent in another process. Without tracing nothing is
// stored. An invalid annotation is no parent.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	ctx, span := sdktrace.NewTracerProvider().Tracer("test").Start(t.Context(), "accept")
	defer span.End()
	stored := Annotations(ctx)
	parent := trace.SpanContextFromContext(With(t.Context(), stored))
	if parent.TraceID() != span.SpanContext().TraceID() || parent.SpanID() != span.SpanContext().SpanID() ||
		!parent.IsSampled() {
		t.Errorf("stored %v: the parent is %v, want %v", stored, parent, span.SpanContext())
	}
	want := `{"traceparent":"00-` + span.SpanContext().TraceID().String() + "-" + span.SpanContext().SpanID().String() +
		`-01"}`
	if got := Tekton(stored); got != want {
		t.Errorf("Tekton gets %s, want %s", got, want)
	}
	if got := Annotations(t.Context()); got != nil {
		t.Errorf("without a span %v is stored", got)
	}
	if got := Tekton(nil); got != "" {
		t.Errorf("without a span Tekton gets %q", got)
	}
	for _, annotations := range []map[string]string{nil, {"plumbline.dev/traceparent": "00-nonsense"}} {
		if got := trace.SpanContextFromContext(With(t.Context(), annotations)); got.IsValid() {
			t.Errorf("%v names the parent %v", annotations, got)
		}
	}
}
