// SPDX-License-Identifier: Apache-2.0

// Package tracecontext carries a trace from the process that accepted a delivery to those that act
// on it: the W3C traceparent is an annotation of the GitEvent. What senders of deliveries put in
// their headers is not carried.
package tracecontext

import (
	"context"
	"encoding/json"

	"go.opentelemetry.io/otel/propagation"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
)

// header is the W3C header whose value the annotation holds.
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
	return propagation.TraceContext{}.Extract(
		ctx,
		propagation.MapCarrier{header: annotations[plumbline.TraceparentAnnotation]},
	)
}

// Tekton returns the same span as Tekton reads it from a PipelineRun's annotation, "" if there is
// none.
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
