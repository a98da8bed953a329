// SPDX-License-Identifier: Apache-2.0

package hooklog

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// settled settles an event.
func settled(e *v1alpha1.GitEvent) { e.Status.Phase = v1alpha1.PhaseSettled }

// If there are nearly as many settled events as settled-cap, the sweep has evicted older ones. A
// head as old as these may have had a record. An event that lives longer than others of its age
// says nothing.
func TestHeadsOlderThanEvictedRecordsAreNotNamed(t *testing.T) {
	for name, c := range map[string]struct {
		stubs  int
		before func(e *env)
		want   string
	}{
		"as many as are kept, all of them newer": {100, func(*env) {}, "True Called"},
		"a few less":                             {95, func(*env) {}, "True Called"},
		"not as many":                            {50, func(*env) {}, "False HeadsNotRecorded"},
		"one is older": {
			100, func(e *env) { e.record(1000, commit("c"), settled) }, "False HeadsNotRecorded",
		},
		"an older one is not over": {100, func(e *env) { e.record(1000, commit("c")) }, "True Called"},
		"an older one was over later": {100, func(e *env) {
			over := metav1.NewTime(e.clock.Now().Add(5 * time.Hour))
			e.record(1000, commit("c"), settled, func(e *v1alpha1.GitEvent) { e.Status.SettledAt = &over })
		}, "True Called"},
		"an older one is spared": {100, func(e *env) {
			e.record(1000, commit("c"), settled, func(e *v1alpha1.GitEvent) { e.Status.Unreported = true })
		}, "True Called"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.source.settings().SettledCap = 100
			c.before(e)
			e.clock.Step(time.Minute)
			e.move(0, commit("a"))
			e.clock.Step(5 * time.Hour)
			for n := range c.stubs {
				e.record(int64(n+1), commit("b"), settled)
			}
			e.pause(10 * time.Minute)
			e.run(10 * time.Minute)
			e.wantCondition(c.want)
		})
	}
}

// many are settled events without an end, as many on a page as the caller wants.
type many struct {
	lists int
	left  *int64
	at    time.Time
}

func (m *many) List(_ context.Context, o metav1.ListOptions) (*v1alpha1.GitEventList, error) {
	m.lists++
	page := &v1alpha1.GitEventList{ListMeta: metav1.ListMeta{Continue: "more", RemainingItemCount: m.left}}
	for n := range o.Limit {
		e := v1alpha1.GitEvent{
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(m.at.Add(time.Duration(n) * time.Minute))},
		}
		settled(&e)
		page.Items = append(page.Items, e)
	}
	return page, nil
}

// A few pages are enough to see how old the events are, and one page if there are far fewer than
// the cap.
func TestFewEventsAreReadForTheAgeOfRecords(t *testing.T) {
	e := newEnv(t)
	few, nearly := int64(5000), int64(8900)
	for name, c := range map[string]struct {
		left  *int64
		lists int
		want  time.Time
	}{
		"few":                      {&few, 1, time.Time{}},
		"nearly as many as may be": {&nearly, samplePages, e.clock.Now()},
		"not counted":              {nil, samplePages, e.clock.Now()},
	} {
		events := &many{left: c.left, at: e.clock.Now()}
		e.source.events = events
		if got, err := e.source.keptSince(t.Context()); err != nil || !got.Equal(c.want) || events.lists != c.lists {
			t.Errorf("%s: %v, %v, after %d lists", name, got, err, events.lists)
		}
	}
}

// Another installation recorded them.
func TestHeadsFromBeforeTheClaimAreNotNamed(t *testing.T) {
	e := newEnv(t)
	e.move(0, commit("a"))
	e.move(7, commit("b"))
	e.run(time.Hour)
	claim := e.claims.List()[0].(*v1alpha1.RepositoryClaim).DeepCopy()
	claim.CreationTimestamp = metav1.NewTime(e.clock.Now())
	e.add(e.claims, claim)
	e.start()
	e.signal() // a receiver has started
	e.run(time.Hour)
	e.wantCondition("")
	e.move(7, commit("c"))
	e.pause(10 * time.Minute)
	e.run(10 * time.Minute)
	e.wantCondition("False HeadsNotRecorded")
}

// webhooksCalled returns how many webhooks GitLab calls, by the metric of the process.
func (e *env) webhooksCalled() (n int64) {
	e.Helper()
	var all metricdata.ResourceMetrics
	if err := e.meter.Collect(e.Context(), &all); err != nil {
		e.Fatal(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		gauge, _ := m.Data.(metricdata.Gauge[int64])
		for _, point := range gauge.DataPoints {
			if called, _ := point.Attributes.Value("called"); m.Name == "plumbline.webhooks" && called.AsString() == "true" {
				n += point.Value
			}
		}
	}
	return n
}
