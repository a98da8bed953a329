// SPDX-License-Identifier: Apache-2.0

package redelivery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MeterName is the name of the meter that all logs of deliveries share.
const MeterName = "github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"

// Metrics are of the logs that this process reads.
type Metrics struct {
	reads, requests, givenUp metric.Int64Counter

	mu     sync.Mutex
	missed map[types.NamespacedName]int
	called map[types.NamespacedName]corev1.ConditionStatus
}

// AppMetrics returns the metrics of the GitHub App's log.
func AppMetrics(meter metric.Meter) (*Metrics, error) {
	m, err := newMetrics(meter, "plumbline.deliveries", "redeliveries")
	m.requests.Add(context.Background(), 0)
	return m, err
}

// WebhookMetrics returns the metrics of the logs of GitLab's webhooks.
func WebhookMetrics(meter metric.Meter) (*Metrics, error) {
	m, err := newMetrics(meter, "plumbline.webhooks", "resends")
	m.requests.Add(context.Background(), 0, outcome(true))
	m.requests.Add(context.Background(), 0, outcome(false))
	const text = "Repositories whose webhook logs this process reads, by whether GitLab calls the webhook."
	_, err2 := gauge(meter, "plumbline.webhooks", "{repository}", text, m.observeCalled)
	return m, errors.Join(err, err2)
}

func newMetrics(meter metric.Meter, prefix, requests string) (*Metrics, error) {
	m := &Metrics{missed: map[types.NamespacedName]int{}, called: map[types.NamespacedName]corev1.ConditionStatus{}}
	counter := func(name, text string) (metric.Int64Counter, error) {
		return meter.Int64Counter(prefix+name, metric.WithDescription(text))
	}
	var errs [4]error
	m.reads, errs[0] = counter(".looks", "Reads of the Git service's log of deliveries, by outcome.")
	m.requests, errs[1] = counter("."+requests, "Redeliveries that were requested from the Git service.")
	m.givenUp, errs[2] = counter(".given.up", "Undelivered webhooks that are not requested any more; each is an Event.")
	const text = "Undelivered webhooks that the last reads found, and that are requested."
	_, errs[3] = gauge(meter, prefix+".missed", "{delivery}", text, m.observeMissed)
	// A series that begins at its first event hides that event from increase().
	ctx := context.Background()
	m.givenUp.Add(ctx, 0)
	m.reads.Add(ctx, 0, outcome(true))
	m.reads.Add(ctx, 0, outcome(false))
	if err := errors.Join(errs[:]...); err != nil {
		return m, fmt.Errorf("making the metrics of redeliveries: %w", err)
	}
	return m, nil
}

func gauge(
	meter metric.Meter, name, unit, text string, observe metric.Int64Callback,
) (metric.Int64ObservableGauge, error) {
	return meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(text),
		metric.WithInt64Callback(observe))
}

func outcome(ok bool) metric.MeasurementOption {
	name := "failed"
	if ok {
		name = "ok"
	}
	return metric.WithAttributes(attribute.String("outcome", name))
}

// Read counts a read of a log.
func (m *Metrics) Read(ctx context.Context, err error) { m.reads.Add(ctx, 1, outcome(err == nil)) }

// GaveUp counts a delivery that is given up.
func (m *Metrics) GaveUp(ctx context.Context) { m.givenUp.Add(ctx, 1) }

// Requested counts a request whose result the log will show.
func (m *Metrics) Requested(ctx context.Context) { m.requests.Add(ctx, 1) }

// Resent counts a request whose result is known.
func (m *Metrics) Resent(ctx context.Context, ok bool) { m.requests.Add(ctx, 1, outcome(ok)) }

// Missed records how many undelivered webhooks of a log are requested.
func (m *Metrics) Missed(key types.NamespacedName, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.missed[key] = n
}

// Called records whether GitLab calls the webhook of a Repository.
func (m *Metrics) Called(key types.NamespacedName, status corev1.ConditionStatus) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.called[key] = status
}

// Forget drops a log that this process does not read any more.
func (m *Metrics) Forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.missed, key)
	delete(m.called, key)
}

func (m *Metrics) observeMissed(_ context.Context, o metric.Int64Observer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := 0
	for _, n := range m.missed {
		sum += n
	}
	o.Observe(int64(sum))
	return nil
}

// observeCalled has the attribute called: true, false or unknown.
func (m *Metrics) observeCalled(_ context.Context, o metric.Int64Observer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := map[corev1.ConditionStatus]int64{}
	for _, status := range m.called {
		counts[status]++
	}
	for _, status := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown} {
		o.Observe(counts[status], metric.WithAttributes(attribute.String("called", strings.ToLower(string(status)))))
	}
	return nil
}
