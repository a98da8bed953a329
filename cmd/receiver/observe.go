// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/zap"
	"knative.dev/pkg/observability"
	"knative.dev/pkg/observability/metrics"
	"knative.dev/pkg/observability/resource"
	"knative.dev/pkg/observability/tracing"
)

// flushBudget bounds the shutdown of the metrics server and the sending of the last spans.
const flushBudget = 2 * time.Second

// newMeters serves /metrics in Prometheus's format.
func newMeters(ctx context.Context, s settings) (*metrics.MeterProvider, error) {
	cfg := observability.MetricsConfig{
		Protocol: metrics.ProtocolPrometheus, Endpoint: net.JoinHostPort("", strconv.Itoa(s.metricsPort)),
	}
	provider, err := metrics.NewMeterProvider(ctx, cfg, sdkmetric.WithResource(resource.Default(component)))
	if err != nil {
		return nil, fmt.Errorf("serving metrics: %w", err)
	}
	return provider, nil
}

// tracingKeys are the keys of knative's observability configuration that the receiver reads. Each
// is a flag whose default is an environment variable, which the Deployment takes from the
// ConfigMap: so reading them needs no API server.
func tracingKeys() map[string]string {
	return map[string]string{
		"tracing-protocol":      "http/protobuf or grpc; empty is no traces",
		"tracing-endpoint":      "URL of an OTLP collector",
		"tracing-sampling-rate": "fraction of the deliveries that are traced, 0 to 1",
	}
}

// traceFlags registers the flags. The map that it returns is complete once flags are parsed.
func traceFlags() map[string]*string {
	values := map[string]*string{}
	for key, usage := range tracingKeys() {
		variable := strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
		values[key] = flag.String(key, os.Getenv(variable), usage+"; the default is "+variable)
	}
	return values
}

// newTracer installs the tracer that the keys configure. An invalid configuration is logged, and
// deliveries are then received without traces.
func newTracer(
	ctx context.Context, logger *zap.SugaredLogger, keys map[string]*string,
) (shutdown func(context.Context) error) {
	data := map[string]string{}
	for key, value := range keys {
		if *value != "" {
			data[key] = *value
		}
	}
	none := func(context.Context) error { return nil }
	cfg, err := tracing.NewFromMap(data)
	if err != nil {
		logger.Errorw("no traces: correct the tracing keys of the ConfigMap plumbline-config-observability", zap.Error(err))
		return none
	}
	provider, err := tracing.NewTracerProvider(ctx, cfg, sdktrace.WithResource(resource.Default(component)))
	if err != nil {
		logger.Errorw("no traces: correct the tracing keys of the ConfigMap plumbline-config-observability", zap.Error(err))
		return none
	}
	otel.SetTracerProvider(provider)
	return provider.Shutdown
}
