// SPDX-License-Identifier: Apache-2.0

package apicalls

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// A call that the API server refuses is counted by its verb, its resource and the reason. Its
// caller gets the whole response.
func TestCount(t *testing.T) {
	t.Parallel()
	const runs = "/apis/tekton.dev/v1/namespaces/ci/pipelineruns"
	status := func(code int32, reason metav1.StatusReason, message string) metav1.Status {
		return metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Code: code, Reason: reason, Message: message}
	}
	refused := status(500, metav1.StatusReasonInternalError,
		`Internal error occurred: failed calling webhook "w.dev": failed to call webhook: Post "https://w": dial tcp 10.0.0.1:443: connect: connection refused`)
	cases := []struct {
		sentence     string
		method, path string
		code         int
		body         any
		want         map[string]int64
	}{
		{"an answer is no failure", "GET", runs + "/x", 200, "{}", nil},
		{"that it does not exist is an answer", "GET", runs + "/x", 404, metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Code: 404, Reason: metav1.StatusReasonNotFound,
			Details: &metav1.StatusDetails{Kind: "pipelineruns"},
		}, nil},
		{"so it is in protobuf", "GET", "/apis/coordination.k8s.io/v1/namespaces/ci/leases/x", 404,
			inProtobuf(t, metav1.Status{
				Code: 404, Reason: metav1.StatusReasonNotFound, Details: &metav1.StatusDetails{Kind: "leases"},
			}), nil},
		{"that it exists is an answer", "POST", runs, 409, status(409, metav1.StatusReasonAlreadyExists, "x"), nil},
		{"a webhook that is down has a name", "PATCH", runs + "/x", 500, refused, map[string]int64{
			"plumbline.kube.failures class=Transient reason=AdmissionWebhookUnavailable resource=pipelineruns verb=patch": 1,
			"plumbline.admission.failures kind=refused webhook=w.dev":                                                     1,
		}},
		{"a proxy's page is no Status", "GET", "/api/v1/namespaces/ci/secrets/x", 502, "<html>", map[string]int64{
			"plumbline.kube.failures class=Transient reason=Unavailable resource=secrets verb=read": 1,
		}},
		{"a dry run is one", "POST", runs + "?dryRun=All", 400,
			status(400, metav1.StatusReasonBadRequest, `admission webhook "w.dev" does not support dry run`), map[string]int64{
				"plumbline.kube.failures class=Ignored reason=DryRunNotSupported resource=pipelineruns verb=dry-run": 1,
			}},
		{"cluster-wide, and no resource at all", "GET", "/version", 401,
			status(401, metav1.StatusReasonUnauthorized, "Unauthorized"), map[string]int64{
				"plumbline.kube.failures class=Transient reason=Unauthorized resource=none verb=read": 1,
			}},
	}
	for _, c := range cases {
		t.Run(c.sentence, func(t *testing.T) {
			t.Parallel()
			sent, inBytes := c.body.([]byte)
			if !inBytes {
				var err error
				if sent, err = json.Marshal(c.body); err != nil {
					t.Fatal(err)
				}
			}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.code)
				_, _ = w.Write(sent)
			}))
			defer server.Close()
			client, reader := counted(t)
			got := call(t, client, c.method, server.URL+c.path)
			if got != string(sent) {
				t.Errorf("the caller reads %q, want %q", got, sent)
			}
			if diff := cmp.Diff(c.want, collect(t, reader)); diff != "" {
				t.Error("counted (-want +got):", diff)
			}
		})
	}
}

// A call without an answer counts as well, unless we ended it ourselves.
func TestCountWithoutAnswer(t *testing.T) {
	t.Parallel()
	client, reader := counted(t)
	server := httptest.NewServer(nil)
	server.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, ctx := range []context.Context{t.Context(), ended} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/api/v1/pods", nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := client.Do(req); err == nil {
			_ = resp.Body.Close()
			t.Fatal("a closed server answers")
		}
	}
	want := map[string]int64{"plumbline.kube.failures class=Transient reason=Unreachable resource=pods verb=read": 1}
	if diff := cmp.Diff(want, collect(t, reader)); diff != "" {
		t.Error("counted (-want +got):", diff)
	}
}

// Only the first names of webhooks become labels, however many a cluster has.
func TestNamesAreBounded(t *testing.T) {
	t.Parallel()
	n := newNames(2)
	for i, want := range []string{"n0", "n1", "other", "n1"} {
		if got := n.bounded([]string{"n0", "n1", "n2", "n1"}[i]); got != want {
			t.Errorf("name %d became %q, want %q", i, got, want)
		}
	}
}

func inProtobuf(t *testing.T, status metav1.Status) []byte {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !ok {
		t.Fatal("client-go knows no protobuf")
	}
	data, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), &status)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func counted(t *testing.T) (*http.Client, *sdkmetric.ManualReader) {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	cfg := &rest.Config{}
	if err := Count(cfg, sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))); err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client, reader
}

func call(t *testing.T, client *http.Client, method, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// collect returns "<name> <label>=<value> …" of every counter; nil when there is none.
func collect(t *testing.T, reader *sdkmetric.ManualReader) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	var found map[string]int64
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			sum, ok := m.Data.(metricdata.Sum[int64])
			if !ok {
				t.Fatalf("%s is a %T", m.Name, m.Data)
			}
			for _, point := range sum.DataPoints {
				key := m.Name
				for _, label := range point.Attributes.ToSlice() {
					key += fmt.Sprintf(" %s=%s", label.Key, label.Value.String())
				}
				if found == nil {
					found = map[string]int64{}
				}
				found[key] += point.Value
			}
		}
	}
	return found
}
