// SPDX-License-Identifier: Apache-2.0

// Package tracecontext passes a trace from the process that accepted a delivery to those that act
// on it, in the W3C traceparent annotation of the GitEvent. It does not use the headers of
// deliveries.
package tracecontext

import (
	"context"
	"encoding/json"

	"go.opentelemetry.io/otel/propagation"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
)

// header is the W3C header whose value is in the annotation.
const header = "traceparent"

// Annotations returns the annotation that names the span in ctx, nil when there is none (tracing is
// off).
func Annotations(ctx context.Context) map[string]string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	if carrier[header] == "" {
		return nil
	}
	return map[string]string{plumbline.TraceparentAnnotation: carrier[header]}
}

// With returns ctx with the span that the annotations name as the parent of spans to come; ctx
// itself if they name none.
func With(ctx context.Context, annotations map[string]string) context.Context {
	return propagation.TraceContext{}.Extract(ctx,
		propagation.MapCarrier{header: annotations[plumbline.TraceparentAnnotation]})
}

// Tekton returns the span in the form that Tekton reads from a PipelineRun's annotation, "" if
// there is none.
func Tekton(annotations map[string]string) string {
	parent := annotations[plumbline.TraceparentAnnotation]
	if parent == "" {
		return ""
	}
	carrier, err := json.Marshal(map[string]string{header: parent})
	if err != nil { // two strings always marshal
		return ""
	}
	return string(carrier)
}
