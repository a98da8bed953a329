// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

const meterName = "github.com/plumbline-ci/plumbline/pkg/reconciler/sweep"

// metrics are the metrics of the process that sweeps. In other processes the gauges have no values.
type metrics struct {
	skips, losses, passes metric.Int64Counter

	mu    sync.Mutex
	found counts
	at    time.Time // of the end of the last pass
}

// newMetrics registers them; sweeps reports whether this process sweeps.
func newMetrics(meter metric.Meter, sweeps func() bool) (*metrics, error) {
	m := &metrics{}
	var errs [5]error
	m.skips, errs[0] = meter.Int64Counter("plumbline.sweep.skipped",
		metric.WithDescription("Objects that could not be handled, by phase; the next pass meets them again."))
	m.losses, errs[1] = meter.Int64Counter("plumbline.sweep.tombstones.lost",
		metric.WithDescription("Tombstones that a full page lost before their time: a redelivery would run twice."))
	m.passes, errs[4] = meter.Int64Counter("plumbline.sweep.passes",
		metric.WithDescription("Passes that went to their end; those of all processes together count."))
	gauge := func(name, description string, value func(counts) int) error {
		_, err := meter.Int64ObservableGauge(
			name,
			metric.WithDescription(description),
			metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
				m.mu.Lock()
				defer m.mu.Unlock()
				if sweeps() && !m.at.IsZero() {
					o.Observe(int64(value(m.found)))
				}
				return nil
			}),
		)
		return err
	}
	errs[2] = gauge("plumbline.sweep.stubs", "Settled events that the last pass left.",
		func(c counts) int { return c.stubs })
	errs[3] = gauge("plumbline.sweep.tombstones", "Tombstones that count, as the last pass found them.",
		func(c counts) int { return c.tombstones })
	if err := errors.Join(errs[:]...); err != nil {
		return m, fmt.Errorf("making the metrics of the sweep: %w", err)
	}
	// A series that begins at its first event hides that event from increase().
	m.losses.Add(context.Background(), 0)
	m.passes.Add(context.Background(), 0)
	return m, nil
}

func (m *metrics) skipped(ctx context.Context, phase string) {
	m.skips.Add(ctx, 1, metric.WithAttributes(attribute.String("phase", phase)))
}

func (m *metrics) lost(ctx context.Context, n int) {
	if n > 0 {
		m.losses.Add(ctx, int64(n))
	}
}

func (m *metrics) passed(ctx context.Context, found counts, at time.Time) {
	m.passes.Add(ctx, 1)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.found, m.at = found, at
}
