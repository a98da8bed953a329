// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strconv"
	"time"

	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/zap"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/observability"
	"knative.dev/pkg/observability/metrics"
	"knative.dev/pkg/observability/resource"
	"knative.dev/pkg/observability/tracing"
)

// flushBudget bounds the end of the metrics server and the sending of the last spans.
const flushBudget = 2 * time.Second

// newMeters serves /metrics in Prometheus's format. There is no pprof: nobody but Git services talks to this process.
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

// newTracer installs the tracer that dir configures: a folder with a file for each key of knative's observability
// ConfigMap, which a volume provides without a call to the API server. Deliveries are taken without traces rather than
// not at all, so what is wrong with the configuration is logged.
func newTracer(ctx context.Context, logger *zap.SugaredLogger, dir string) (shutdown func(context.Context) error) {
	none := func(context.Context) error { return nil }
	if dir == "" {
		return none
	}
	data, err := configmap.Load(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return none // the ConfigMap is optional
	}
	if err != nil {
		logger.Errorw("no traces: reading the observability configuration", "folder", dir, zap.Error(err))
		return none
	}
	cfg, err := tracing.NewFromMap(data)
	if err != nil {
		logger.Errorw("no traces: correct the ConfigMap plumbline-config-observability", zap.Error(err))
		return none
	}
	provider, err := tracing.NewTracerProvider(ctx, cfg, sdktrace.WithResource(resource.Default(component)))
	if err != nil {
		logger.Errorw("no traces: correct the ConfigMap plumbline-config-observability", zap.Error(err))
		return none
	}
	otel.SetTracerProvider(provider)
	return provider.Shutdown
}
