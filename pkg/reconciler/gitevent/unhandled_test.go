// SPDX-License-Identifier: Apache-2.0

package gitevent

import (
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/backoff"
	"github.com/plumbline-ci/plumbline/pkg/status"
)

// A refusal that a step turns into neither an answer nor a disposition is a defect that shows: the
// event waits, says so, and goes on when the cause is gone. It must not become silent for ever. Not
// parallel: the meter provider is global.
func TestUnhandledRefusalShows(t *testing.T) {
	before := otel.GetMeterProvider()
	t.Cleanup(func() { otel.SetMeterProvider(before) })
	reader := sdkmetric.NewManualReader()
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	for name, c := range map[string]struct {
		step   string
		refuse func(*fakeGit)
		fix    func(*fakeGit)
	}{
		"the plan is refused": {
			v1alpha1.StepPlan, func(g *fakeGit) { g.err = fault.Invalidf("TooBig", "no") }, func(g *fakeGit) { g.err = nil },
		},
		"the plan has nothing to do": {
			v1alpha1.StepPlan, func(g *fakeGit) { g.err = fault.Ignoredf("NotOurs", "no") }, func(g *fakeGit) { g.err = nil },
		},
		"a report is refused": {v1alpha1.StepReport, func(g *fakeGit) {
			g.asked = func(status.Check) error { return fault.Invalidf("TooBig", "no") }
		}, func(g *fakeGit) { g.asked = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t, helloFile("hello"))
			c.refuse(w.git)
			for range 2 {
				_, err := w.reconcile()
				if after, known := backoff.KnownWait(err); !known || after != fault.OperatorRetry {
					t.Errorf("error %v, want a timer of %v", err, fault.OperatorRetry)
				}
				wait := w.event().Status.Waits
				if len(wait) != 1 || wait[0].Step != c.step || wait[0].Class != "Operator" ||
					wait[0].Reason != fault.ReasonUnhandled || !strings.Contains(wait[0].Message, "report it") {
					t.Fatalf("waits %+v, want one of %s that says that it is a defect", wait, c.step)
				}
				w.advance(fault.OperatorRetry)
			}
			c.fix(w.git)
			w.settle(corev1.ConditionTrue)
			w.wantSuccess()
		})
	}
	if got := sumOf(t, reader, "plumbline.gitevent.unhandled"); got != 6 {
		t.Errorf("counted %d, want 6", got)
	}
}

func sumOf(t *testing.T, reader sdkmetric.Reader, name string) int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, scope := range all.ScopeMetrics {
		for _, one := range scope.Metrics {
			if data, ok := one.Data.(metricdata.Sum[int64]); ok && one.Name == name {
				for _, point := range data.DataPoints {
					sum += point.Value
				}
			}
		}
	}
	return sum
}
