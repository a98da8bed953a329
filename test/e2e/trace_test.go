// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// One trace leads from the acceptance of a delivery in the receiver to the final check that the
// controller reports. The PipelineRun carries its context for Tekton. The collector gets the spans
// of both processes under one id.
func TestOneTraceFromDeliveryToFinalCheck(t *testing.T) {
	t.Parallel()
	collector := newCollector(t)
	settings := map[string]string{
		"tracing-protocol": "http/protobuf", "tracing-endpoint": collector.url, "tracing-sampling-rate": "1",
	}
	s := setup{controllers: 1}
	var flags []string
	for key, value := range settings {
		s.config = append(s.config, [3]string{"plumbline-config-observability", key, value})
		flags = append(flags, "-"+key+"="+value)
	}
	env := newEnvironment(t, s)
	env.startReceiver(false, flags...)
	env.awaitClaimed()
	sha, delivery := env.push(map[string]string{".tekton/push.yaml": pipeline("traced", "push")})
	env.deliver(delivery, http.StatusAccepted)
	env.awaitCheck(sha, checkName("traced"), "success", soon)
	var trace string
	env.eventually(soon, "the spans of the delivery are at the collector", func() error {
		all := collector.spans()
		at := slices.IndexFunc(all, func(s span) bool { return s.name == "accept" })
		if at < 0 {
			return fmt.Errorf("no accept among %v", all)
		}
		trace = all[at].trace
		for _, want := range []span{
			{trace, "plumbline-receiver", "accept", ""}, {trace, "plumbline-controller", "plan", ""},
			{trace, "plumbline-controller", "create", ""}, {trace, "plumbline-controller", "report", "success"},
		} {
			if !slices.Contains(all, want) {
				return fmt.Errorf("no %v among %v", want, all)
			}
		}
		return nil
	})
	for _, body := range collector.bodies() {
		env.readable.add("a trace", string(body))
	}
	if told := env.runs()[0].Annotations["tekton.dev/pipelinerunSpanContext"]; !strings.Contains(told, trace) {
		t.Errorf("Tekton gets the trace context %q, want trace %s", told, trace)
	}
}

// span is the part of a span that the test reads.
type span struct{ trace, service, name, conclusion string }

// collector is an OTLP endpoint that stores what it receives.
type collector struct {
	url string

	mu   sync.Mutex
	sent [][]byte
	t    *testing.T
}

func newCollector(t *testing.T) *collector {
	c := &collector{t: t}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // an incomplete body does not decode
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sent = append(c.sent, body)
	}))
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func (c *collector) bodies() [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sent)
}

func (c *collector) spans() []span {
	c.t.Helper()
	var found []span
	for _, body := range c.bodies() {
		var request tracepb.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &request); err != nil {
			c.t.Fatalf("the collector was sent what is no OTLP: %v", err)
		}
		for _, resource := range request.ResourceSpans {
			service := ""
			for _, attribute := range resource.Resource.Attributes {
				if attribute.Key == "service.name" {
					service = attribute.Value.GetStringValue()
				}
			}
			for _, scope := range resource.ScopeSpans {
				for _, s := range scope.Spans {
					one := span{trace: fmt.Sprintf("%x", s.TraceId), service: service, name: s.Name}
					for _, attribute := range s.Attributes {
						if attribute.Key == "plumbline.conclusion" {
							one.conclusion = attribute.Value.GetStringValue()
						}
					}
					found = append(found, one)
				}
			}
		}
	}
	return found
}
