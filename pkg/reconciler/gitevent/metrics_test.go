// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// Each step is measured once, from the receipt of the delivery, and each end of a run from that end until the Git
// service first accepts it. Not parallel: the meter provider is the process's.
func TestWhatStatusWritesAndReportsMeasure(t *testing.T) {
	before := otel.GetMeterProvider()
	t.Cleanup(func() { otel.SetMeterProvider(before) })
	reader := sdkmetric.NewManualReader()
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	m, ctx := newMetrics(), t.Context()
	received := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	after := func(seconds int) time.Time { return received.Add(time.Duration(seconds) * time.Second) }
	ended := metav1.NewTime(after(10))
	event := &v1alpha1.GitEvent{Spec: v1alpha1.GitEventSpec{ReceivedAt: metav1.NewTime(received)}}
	write := func(seconds int, change func()) {
		stored := event.Status.DeepCopy()
		change()
		m.recorded(ctx, stored, event, after(seconds))
	}
	write(1, func() {
		event.MarkTrue(v1alpha1.GitEventPlanned, "", "")
		event.Status.Plan = &v1alpha1.Plan{Reason: "Selected"}
	})
	write(2, func() { event.MarkTrue(v1alpha1.GitEventCreated, "", "") })
	write(3, func() { event.Status.Disposition = v1alpha1.DispositionRuns })
	event.Status.Runs = []v1alpha1.Run{{Name: "run", Result: &v1alpha1.Result{CompletedAt: &ended}}}
	final := &status.Check{Key: "run", Conclusion: "success"}
	m.accepted(ctx, event, v1alpha1.Check{Key: "run"}, &status.Check{Key: "run"}, after(4))
	m.accepted(ctx, event, v1alpha1.Check{Key: "run", Accepted: "x"}, final, after(15))
	m.accepted(ctx, event, v1alpha1.Check{Key: "run", Accepted: "y", Concluded: true}, final, after(60)) // looked for duplicates
	write(20, func() { event.Status.Phase = v1alpha1.PhaseSettled })

	var all metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &all); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, one := range all.ScopeMetrics[0].Metrics {
		switch data := one.Data.(type) {
		case metricdata.Histogram[float64]:
			for _, point := range data.DataPoints {
				step, _ := point.Attributes.Value("step")
				got[one.Name+" "+step.AsString()] = fmt.Sprintf("%d in %v s", point.Count, point.Sum)
			}
		case metricdata.Sum[int64]:
			for _, point := range data.DataPoints {
				disposition, _ := point.Attributes.Value("disposition")
				reason, _ := point.Attributes.Value("reason")
				got[one.Name+" "+disposition.AsString()+" "+reason.AsString()] = fmt.Sprint(point.Value)
			}
		}
	}
	want := map[string]string{
		"plumbline.gitevent.reached planned": "1 in 1 s", "plumbline.gitevent.reached created": "1 in 2 s",
		"plumbline.gitevent.reached reported": "1 in 4 s", "plumbline.gitevent.reached settled": "1 in 20 s",
		"plumbline.report.delay ": "1 in 5 s", "plumbline.gitevent.settled RunsCreated Selected": "1",
		"plumbline.gitevent.panics  ": "0", "plumbline.gitevent.parked  ": "0", "plumbline.report.dropped  ": "0", "plumbline.gitevent.unhandled  ": "0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("measured (-want +got):", diff)
	}
}
