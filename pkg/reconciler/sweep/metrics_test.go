// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A process shows from its start how many passes have ended. A pass that cannot go on does not
// count.
func TestOnlyACompletePassIsCounted(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	reader := sdkmetric.NewManualReader()
	var err error
	w.sweep.metrics, err = newMetrics(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter(""),
		func() bool { return true })
	w.must(err)
	counted := func(want int64) {
		t.Helper()
		if got := sumOf(t, reader, "plumbline.sweep.passes"); got != want {
			t.Errorf("%d passes are counted, want %d", got, want)
		}
	}
	counted(0)
	w.answer = func(call, _ string) error {
		if call == "list eventpayloads" {
			return apierrors.NewServiceUnavailable("etcd")
		}
		return nil
	}
	for range 5 {
		_ = w.sweep.Reconcile(t.Context(), system+"/"+key)
	}
	counted(0)
	w.answer = func(string, string) error { return nil }
	w.pass()
	w.pass()
	counted(2)
}

// sumOf returns the value of a counter; -1 if it has none.
func sumOf(t *testing.T, reader sdkmetric.Reader, name string) int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == name && len(sum.DataPoints) == 1 {
				return sum.DataPoints[0].Value
			}
		}
	}
	return -1
}
