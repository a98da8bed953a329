// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/reconciler"
)

const meterName = "github.com/plumbline-ci/plumbline/pkg/runtime/leaderelection"

// wanted records the gauge plumbline.leases (queue): how many leases a queue has. It is the sum of
// plumbline.leases.held of all processes, except during a takeover.
func wanted(queue string, leases int) error {
	gauge, err := otel.Meter(meterName).Int64Gauge("plumbline.leases", metric.WithUnit("{lease}"),
		metric.WithDescription("Leases that a queue is divided into, by queue"))
	if err != nil {
		return err
	}
	gauge.Record(context.Background(), int64(leases), metric.WithAttributes(attribute.String("queue", queue)))
	return nil
}

// Count records the gauge plumbline.leases.held (queue): the leases of a queue that this process
// has. It wraps the functions in funcs. Call it after these and the meter provider are set, and
// before the controller runs.
func Count(funcs *reconciler.LeaderAwareFuncs, queue string) error {
	gauge, err := otel.Meter(meterName).Int64Gauge("plumbline.leases.held", metric.WithUnit("{lease}"),
		metric.WithDescription("Leases that this process holds, by queue"))
	if err != nil {
		return err
	}
	l := &leases{held: map[string]bool{}, gauge: gauge, queue: metric.WithAttributes(attribute.String("queue", queue))}
	gauge.Record(context.Background(), 0, l.queue)
	promote, demote := funcs.PromoteFunc, funcs.DemoteFunc
	funcs.PromoteFunc = func(b reconciler.Bucket, enqueue func(reconciler.Bucket, types.NamespacedName)) error {
		l.set(b, true)
		if promote == nil {
			return nil
		}
		return promote(b, enqueue)
	}
	funcs.DemoteFunc = func(b reconciler.Bucket) {
		l.set(b, false)
		if demote != nil {
			demote(b)
		}
	}
	return nil
}

// leases are those of one queue.
type leases struct {
	mu    sync.Mutex
	held  map[string]bool
	gauge metric.Int64Gauge
	queue metric.MeasurementOption
}

// set is also called for the end of a lease that this process never had.
func (l *leases) set(b reconciler.Bucket, holds bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, b.Name())
	if holds {
		l.held[b.Name()] = true
	}
	l.gauge.Record(context.Background(), int64(len(l.held)), l.queue)
}
