// SPDX-License-Identifier: Apache-2.0

package hooklog

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

	"github.com/plumbline-ci/plumbline/pkg/provider"
)

const meterName = "github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery/hooklog"

// metrics are of the webhooks that this process looks after.
type metrics struct {
	looks, resends, givenUp metric.Int64Counter

	mu     sync.Mutex
	missed map[types.NamespacedName]int
	states map[types.NamespacedName]corev1.ConditionStatus
}

func newMetrics(meter metric.Meter) (*metrics, error) {
	m := &metrics{missed: map[types.NamespacedName]int{}, states: map[types.NamespacedName]corev1.ConditionStatus{}}
	var errs [5]error
	m.looks, errs[0] = meter.Int64Counter(
		"plumbline.webhooks.looks",
		metric.WithDescription("Looks at the webhooks of Repositories, by outcome."),
	)
	m.resends, errs[1] = meter.Int64Counter(
		"plumbline.webhooks.resends",
		metric.WithDescription("Missed deliveries that the Git service was asked to send again, by what they were answered."),
	)
	m.givenUp, errs[2] = meter.Int64Counter(
		"plumbline.webhooks.given.up",
		metric.WithDescription(
			"Missed deliveries of webhooks that are not sent again any more; each is told on its Repository.",
		),
	)
	_, errs[3] = meter.Int64ObservableGauge(
		"plumbline.webhooks.missed",
		metric.WithUnit("{delivery}"),
		metric.WithDescription("Deliveries of webhooks that were missed and are sent again, as the last looks found them."),
		metric.WithInt64Callback(m.observeMissed),
	)
	_, errs[4] = meter.Int64ObservableGauge(
		"plumbline.webhooks",
		metric.WithUnit("{repository}"),
		metric.WithDescription(
			"Repositories whose webhooks this process looks after, by whether their Git service calls them.",
		),
		metric.WithInt64Callback(m.observeStates),
	)
	if err := errors.Join(errs[:]...); err != nil {
		return m, fmt.Errorf("making the metrics of webhooks: %w", err)
	}
	// A series that begins at its first event hides that event from increase(), and one that is not
	// there hides that nothing happens.
	ctx := context.Background()
	m.givenUp.Add(ctx, 0)
	for _, outcome := range []string{"ok", "failed"} {
		m.looks.Add(ctx, 0, outcomeOf(outcome))
		m.resends.Add(ctx, 0, outcomeOf(outcome))
	}
	return m, nil
}

func outcomeOf(outcome string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("outcome", outcome))
}

func named(ok bool) metric.MeasurementOption {
	if ok {
		return outcomeOf("ok")
	}
	return outcomeOf("failed")
}

func (m *metrics) looked(ctx context.Context, err error) { m.looks.Add(ctx, 1, named(err == nil)) }
func (m *metrics) gaveUp(ctx context.Context)            { m.givenUp.Add(ctx, 1) }

func (m *metrics) resent(ctx context.Context, status int) {
	m.resends.Add(ctx, 1, named((&provider.Attempt{Status: status}).Succeeded()))
}

func (m *metrics) missing(owner types.NamespacedName, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.missed[owner] = n
}

func (m *metrics) found(owner types.NamespacedName, v verdict) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.states[owner] = v.status
	if v.reason == reasonNotRecorded {
		m.states[owner] = corev1.ConditionTrue // it is called
	}
}

func (m *metrics) forget(owner types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.missed, owner)
	delete(m.states, owner)
}

func (m *metrics) observeMissed(_ context.Context, o metric.Int64Observer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := 0
	for _, n := range m.missed {
		sum += n
	}
	o.Observe(int64(sum))
	return nil
}

// observeStates has the attribute called: true, false or unknown.
func (m *metrics) observeStates(_ context.Context, o metric.Int64Observer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := map[corev1.ConditionStatus]int64{
		corev1.ConditionTrue:    0,
		corev1.ConditionFalse:   0,
		corev1.ConditionUnknown: 0,
	}
	for _, status := range m.states {
		counts[status]++
	}
	for status, n := range counts {
		o.Observe(n, metric.WithAttributes(attribute.String("called", strings.ToLower(string(status)))))
	}
	return nil
}
