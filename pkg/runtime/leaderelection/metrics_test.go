// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"testing"

	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/reconciler"
)

type bucket struct {
	reconciler.Bucket
	name string
}

func (b bucket) Name() string { return b.name }

// The gauge follows promotions and demotions. The reconciler's own functions are still called. A
// demotion without a promotion does not change the gauge.
func TestCount(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	promoted := 0
	funcs := map[string]*reconciler.LeaderAwareFuncs{"a": {}, "b": {}}
	funcs["a"].PromoteFunc = func(reconciler.Bucket, func(reconciler.Bucket, types.NamespacedName)) error {
		promoted++
		return nil
	}
	for queue, f := range funcs {
		if err := Count(f, queue); err != nil {
			t.Fatal(err)
		}
	}
	if err := wanted("a", 2); err != nil {
		t.Fatal(err)
	}
	enqueue := func(reconciler.Bucket, types.NamespacedName) {}
	promote := func(queue, name string) {
		if err := funcs[queue].Promote(bucket{name: name}, enqueue); err != nil {
			t.Fatal(err)
		}
	}
	promote("a", "0")
	promote("a", "1")
	promote("b", "0")
	funcs["a"].Demote(bucket{name: "0"})
	funcs["b"].Demote(bucket{name: "1"})
	if promoted != 2 {
		t.Errorf("the reconciler was promoted %d times, want 2", promoted)
	}
	got := collect(t, reader)
	for name, want := range map[string]int64{"plumbline.leases.held/a": 1, "plumbline.leases.held/b": 1,
		"plumbline.leases/a": 2} {
		if got[name] != want {
			t.Errorf("%s is %d, want %d", name, got[name], want)
		}
	}
}

func collect(t *testing.T, reader *sdkmetric.ManualReader) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	found := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			gauge, ok := m.Data.(metricdata.Gauge[int64])
			if !ok {
				t.Fatalf("%s is a %T", m.Name, m.Data)
			}
			for _, point := range gauge.DataPoints {
				queue, _ := point.Attributes.Value("queue")
				found[m.Name+"/"+queue.AsString()] = point.Value
			}
		}
	}
	return found
}
