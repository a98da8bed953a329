// SPDX-License-Identifier: Apache-2.0

package applog

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

const meterName = "github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery/applog"

// metrics are of the process that looks for missed deliveries; the others show 0.
type metrics struct {
	looks, redeliveries, givenUp metric.Int64Counter
	open                         metric.Int64Gauge
}

func newMetrics(meter metric.Meter) (*metrics, error) {
	m := &metrics{}
	var errs [4]error
	m.looks, errs[0] = meter.Int64Counter(
		"plumbline.deliveries.looks",
		metric.WithDescription("Looks for missed deliveries in the Git service's log, by outcome."),
	)
	m.redeliveries, errs[1] = meter.Int64Counter(
		"plumbline.deliveries.redeliveries",
		metric.WithDescription("Redeliveries that the Git service was asked for."),
	)
	m.givenUp, errs[2] = meter.Int64Counter(
		"plumbline.deliveries.given.up",
		metric.WithDescription("Missed deliveries that are not asked for any more; each is told on its Repository."),
	)
	m.open, errs[3] = meter.Int64Gauge(
		"plumbline.deliveries.missed",
		metric.WithUnit("{delivery}"),
		metric.WithDescription("Deliveries that were missed and are asked for, as the last look found them."),
	)
	if err := errors.Join(errs[:]...); err != nil {
		return m, fmt.Errorf("making the metrics of missed deliveries: %w", err)
	}
	// A series that begins at its first event hides that event from increase(), and one that is not
	// there hides that nothing happens.
	ctx := context.Background()
	m.redeliveries.Add(ctx, 0)
	m.givenUp.Add(ctx, 0)
	for _, outcome := range []string{"ok", "failed"} {
		m.looks.Add(ctx, 0, outcomeOf(outcome))
	}
	m.missing(0)
	return m, nil
}

func outcomeOf(outcome string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("outcome", outcome))
}

func (m *metrics) looked(ctx context.Context, err error) {
	if err != nil {
		m.looks.Add(ctx, 1, outcomeOf("failed"))
		return
	}
	m.looks.Add(ctx, 1, outcomeOf("ok"))
}

func (m *metrics) asked(ctx context.Context)  { m.redeliveries.Add(ctx, 1) }
func (m *metrics) gaveUp(ctx context.Context) { m.givenUp.Add(ctx, 1) }
func (m *metrics) missing(n int)              { m.open.Record(context.Background(), int64(n)) }
