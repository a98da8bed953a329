// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/gitevent/metrics"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// Each step is measured once, from the receipt of the delivery, and each result of a run from its
// completion until the Git service first accepts it. Not parallel: the meter provider is global.
func TestStatusWritesAndReportsAreMeasured(t *testing.T) {
	before := otel.GetMeterProvider()
	t.Cleanup(func() { otel.SetMeterProvider(before) })
	reader := sdkmetric.NewManualReader()
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	m, ctx := metrics.New(), t.Context()
	received := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	after := func(seconds int) time.Time { return received.Add(time.Duration(seconds) * time.Second) }
	ended := metav1.NewTime(after(10))
	event := &v1alpha1.GitEvent{Spec: v1alpha1.GitEventSpec{ReceivedAt: metav1.NewTime(received)}}
	write := func(seconds int, change func()) {
		stored := event.Status.DeepCopy()
		change()
		m.Recorded(ctx, stored, event, after(seconds))
	}
	write(1, func() {
		event.MarkTrue(v1alpha1.GitEventPlanned, "", "")
		event.Status.Plan = &v1alpha1.Plan{Reason: "Selected"}
	})
	write(2, func() { event.MarkTrue(v1alpha1.GitEventCreated, "", "") })
	write(3, func() { event.Status.Disposition = v1alpha1.DispositionRuns })
	event.Status.Runs = []v1alpha1.Run{{Name: "run", Result: &v1alpha1.Result{CompletedAt: &ended}}}
	final := &status.Check{Key: "run", Conclusion: "success"}
	m.Accepted(ctx, event, v1alpha1.Check{Key: "run"}, &status.Check{Key: "run"}, after(4))
	m.Accepted(ctx, event, v1alpha1.Check{Key: "run", Accepted: "x"}, final, after(15))
	// looked for duplicates
	m.Accepted(ctx, event, v1alpha1.Check{Key: "run", Accepted: "y", Concluded: true}, final, after(60))
	write(20, func() { event.Status.Phase = v1alpha1.PhaseSettled })

	want := map[string]string{
		"plumbline.gitevent.reached planned": "1 in 1 s", "plumbline.gitevent.reached created": "1 in 2 s",
		"plumbline.gitevent.reached reported": "1 in 4 s", "plumbline.gitevent.reached settled": "1 in 20 s",
		"plumbline.report.delay ": "1 in 5 s", "plumbline.gitevent.settled RunsCreated Selected": "1",
		"plumbline.gitevent.panics  ": "0", "plumbline.gitevent.parked  ": "0", "plumbline.report.dropped  ": "0",
		"plumbline.token.unrevoked  ": "0", "plumbline.gitevent.unhandled  ": "0",
		"plumbline.report.held  ": "0", "plumbline.memory.full  ": "0", "plumbline.pipelinerun.retried  ": "0",
	}
	if diff := cmp.Diff(want, measured(t, reader)); diff != "" {
		t.Error("measured (-want +got):", diff)
	}
}

// measured returns what each metric has counted, and in how many seconds together.
func measured(t *testing.T, reader sdkmetric.Reader) map[string]string {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, one := range metricsOf(all) {
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
	return got
}

// Each step counts once, in the order in which a reconcile records them. Not parallel: the meter
// provider is global.
func TestLifeOfAnEventIsMeasuredOnce(t *testing.T) {
	before := otel.GetMeterProvider()
	t.Cleanup(func() { otel.SetMeterProvider(before) })
	reader := sdkmetric.NewManualReader()
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	w := newEnv(t, helloFile("hello"))
	e := w.event()
	e.Spec.ReceivedAt = metav1.NewTime(w.clock.Now().Add(-time.Second))
	w.replaceEvent(e)
	_, _ = w.reconcile()
	w.advance(time.Minute)
	run, now := w.runs()[0], metav1.NewTime(w.clock.Now())
	run.Status.CompletionTime = &now
	run.Status.SetCondition(&apis.Condition{Type: apis.ConditionSucceeded, Status: corev1.ConditionTrue, Reason: "Done"})
	w.must(w.tekton.Tracker().Update(pipelinev1.SchemeGroupVersion.WithResource("pipelineruns"), &run, run.Namespace))
	w.advance(5 * time.Second)
	for range 2 {
		_, _ = w.reconcile()
	}
	got := measured(t, reader)
	for name, want := range map[string]string{
		"plumbline.gitevent.reached planned": "1 in 1 s", "plumbline.gitevent.reached created": "1 in 1 s",
		"plumbline.gitevent.reached reported": "1 in 1 s",
		"plumbline.gitevent.reached settled":  "1 in 66 s", "plumbline.report.delay ": "1 in 5 s",
		"plumbline.pipelinerun.created  ":                 "1",
		"plumbline.gitevent.settled RunsCreated Selected": "1",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
}

// metricsOf returns the metrics of this package: a reconcile has others, too.
func metricsOf(all metricdata.ResourceMetrics) []metricdata.Metrics {
	for _, scope := range all.ScopeMetrics {
		if scope.Scope.Name == metrics.Name {
			return scope.Metrics
		}
	}
	return nil
}
