// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/quota"
	"github.com/plumbline-ci/plumbline/pkg/receiver/fairness"
	"github.com/plumbline-ci/plumbline/pkg/receiver/recorder"
)

const meterName = "github.com/plumbline-ci/plumbline/pkg/receiver"

// Metrics count deliveries. Labels have few values whatever is sent. The event's name is the
// sender's text, and counts as "other" unless it is known. Reasons are words of this code base.
type Metrics struct {
	deliveries metric.Int64Counter
	duration   metric.Float64Histogram
	refused    metric.Int64Counter
	previous   metric.Int64Counter
	open       metric.Int64UpDownCounter
	cut        metric.Int64Counter
	overBudget metric.Int64Counter
}

// NewMetrics makes the instruments plumbline.receiver.deliveries (provider, event, outcome,
// reason), plumbline.receiver.duration (seconds from the headers to the answer; outcome),
// plumbline.receiver.refused (no labels: deliveries answered 503, each of which is lost unless it
// is sent again), plumbline.receiver.previous_webhook_secret (provider: deliveries verified with
// the secret that is being replaced), plumbline.receiver.over_budget (scope: deliveries answered
// 503 because unsettled events have exhausted a budget), plumbline.receiver.connections (no labels:
// open connections) and plumbline.receiver.cut (bound: connections and deliveries that were ended
// because a limit was reached).
func NewMetrics(provider metric.MeterProvider) (*Metrics, error) {
	meter := provider.Meter(meterName)
	deliveries, errA := meter.Int64Counter("plumbline.receiver.deliveries", metric.WithUnit("{delivery}"),
		metric.WithDescription("Deliveries by provider, event, outcome and reason"))
	duration, errB := meter.Float64Histogram("plumbline.receiver.duration", metric.WithUnit("s"),
		metric.WithDescription("Time from a delivery's headers to its answer; Git services give up at 10 s"),
		metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 10))
	refused, errC := meter.Int64Counter("plumbline.receiver.refused", metric.WithUnit("{delivery}"),
		metric.WithDescription("Deliveries answered 503: not recorded, they must be sent again"))
	previous, errD := meter.Int64Counter("plumbline.receiver.previous_webhook_secret", metric.WithUnit("{delivery}"),
		metric.WithDescription("Deliveries verified with the previous webhook secret: it cannot be removed yet"))
	overBudget, errE := meter.Int64Counter("plumbline.receiver.over_budget", metric.WithUnit("{delivery}"),
		metric.WithDescription("Deliveries answered 503 because unsettled events have exhausted a budget: "+
			"a pull request's, a Repository's, a namespace's or the total"))
	open, errF := meter.Int64UpDownCounter("plumbline.receiver.connections", metric.WithUnit("{connection}"),
		metric.WithDescription("Open connections"))
	cut, errG := meter.Int64Counter("plumbline.receiver.cut", metric.WithUnit("{connection}"),
		metric.WithDescription("Connections that were ended because a limit was reached"))
	if err := errors.Join(errA, errB, errC, errD, errE, errF, errG); err != nil {
		return nil, err
	}
	refused.Add(context.Background(), 0) // a series that starts with its first event hides that event from increase()
	for _, reason := range []string{
		quota.ReasonPull, quota.ReasonRepository, quota.ReasonNamespace, quota.ReasonTotal, fairness.ReasonRate,
	} {
		overBudget.Add(context.Background(), 0, metric.WithAttributes(attribute.String("scope", recorder.QuotaScope(reason))))
	}
	return &Metrics{
		deliveries: deliveries,
		duration:   duration,
		refused:    refused,
		previous:   previous,
		overBudget: overBudget,
		open:       open,
		cut:        cut,
	}, nil
}

// Connected counts accepted connections, or closed ones if n is negative. It and Bounded may be
// called on nil.
func (m *Metrics) Connected(n int64) {
	if m != nil {
		m.open.Add(context.Background(), n)
	}
}

// Bounded counts a connection or delivery that was ended for a limit.
func (m *Metrics) Bounded(bound string) {
	if m != nil {
		m.cut.Add(context.Background(), 1, metric.WithAttributes(attribute.String("bound", bound)))
	}
}

// initialise makes the series of a provider that must exist before their first event.
func (m *Metrics) initialise(provider string) {
	m.previous.Add(context.Background(), 0, metric.WithAttributes(attribute.String("provider", provider)))
}

func (m *Metrics) observe(ctx context.Context, done result, took time.Duration) {
	outcome := attribute.String("outcome", done.outcome)
	m.deliveries.Add(ctx, 1, metric.WithAttributes(
		attribute.String("provider", done.providerName()), attribute.String("event", eventLabel(done.origin.Event)),
		outcome, attribute.String("reason", done.reason)))
	m.duration.Record(ctx, took.Seconds(), metric.WithAttributes(outcome))
	if done.outcome == outcomeUnavailable {
		m.refused.Add(ctx, 1)
	}
	if scope := recorder.QuotaScope(done.reason); scope != "" {
		m.overBudget.Add(ctx, 1, metric.WithAttributes(attribute.String("scope", scope)))
	}
	if done.previousKey() != "" {
		m.previous.Add(ctx, 1, metric.WithAttributes(attribute.String("provider", done.providerName())))
	}
}

// eventLabel bounds the values of the label: these are the events that Git services send to an
// installation that follows the documentation.
func eventLabel(event string) string {
	switch event {
	case "push", "pull_request", "ping", "issue_comment", "commit_comment", "check_run", "check_suite", "merge_group",
		"installation", "installation_repositories", "github_app_authorization", "repository",
		"Push Hook", "Tag Push Hook", "Merge Request Hook", "Note Hook", v1alpha1.EventIncoming:
		return event
	case "":
		return "none"
	}
	return "other"
}
