// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Each call to a Git service is counted by its outcome; a missing object is an answer.
func TestTransportCounts(t *testing.T) {
	before := otel.GetMeterProvider()
	t.Cleanup(func() { otel.SetMeterProvider(before) })
	reader := sdkmetric.NewManualReader()
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	tr := NewTransport(Limits{})
	tr.Provider = "test"
	for _, code := range []int{200, 404, 401, 502, 502} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
		_, _ = do(t, tr, http.MethodGet, url)
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{}
	for _, m := range all.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, point := range data.DataPoints {
				class, _ := point.Attributes.Value("class")
				reason, _ := point.Attributes.Value("reason")
				got[m.Name+" "+class.AsString()+" "+reason.AsString()] = uint64(point.Value)
			}
		case metricdata.Histogram[float64]:
			for _, point := range data.DataPoints {
				outcome, _ := point.Attributes.Value("outcome")
				got[m.Name+" "+outcome.AsString()] = point.Count
			}
		}
	}
	want := map[string]uint64{
		"plumbline.git.failures Operator CredentialsRefused":     1,
		"plumbline.git.failures Transient GitServiceUnavailable": 2,
		"plumbline.git.call.duration ok":                         2, "plumbline.git.call.duration Operator": 1,
		"plumbline.git.call.duration Transient": 2,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("counted (-want +got):", diff)
	}
}
