// SPDX-License-Identifier: Apache-2.0

// Package apicalls counts the API server's refusals of this process's calls. knative's own client
// metrics name no status but 200.
package apicalls

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	meterName = "github.com/plumbline-ci/plumbline/pkg/runtime/apicalls"
	// maxStatus is how much of a refusal is read to classify it; a Status is a few hundred bytes.
	maxStatus = 64 << 10
)

// Count adds to the configuration that its clients count
//   - plumbline.kube.failures (verb, resource, class, reason): calls that failed, by pkg/fault's class and reason, each
//     attempt of client-go included. That something does not exist, or does already, is an answer and not counted, nor
//     is what our own shutdown interrupts.
//   - plumbline.admission.failures (webhook, kind): those that an admission webhook or policy stood in the way of, by
//     fault.Admission. There are at most 50 names, later ones count as "other".
//
// Call it before clients are made of the configuration.
func Count(cfg *rest.Config, provider metric.MeterProvider) error {
	meter := provider.Meter(meterName)
	failures, errA := meter.Int64Counter("plumbline.kube.failures", metric.WithUnit("{call}"),
		metric.WithDescription("Calls that the API server refused or did not answer, by verb, resource, class and reason"))
	admission, errB := meter.Int64Counter(
		"plumbline.admission.failures",
		metric.WithUnit("{call}"),
		metric.WithDescription(
			"Calls that an admission webhook or policy stood in the way of, by its name and the kind of trouble",
		),
	)
	if err := errors.Join(errA, errB); err != nil {
		return fmt.Errorf("making the metrics of API server calls: %w", err)
	}
	c := &counters{failures: failures, admission: admission, names: newNames(maxNames)}
	cfg.Wrap(func(base http.RoundTripper) http.RoundTripper { return &transport{base: base, counters: c} })
	return nil
}

type counters struct {
	failures, admission metric.Int64Counter
	names               *names
}

type transport struct {
	base http.RoundTripper
	*counters
}

// WrappedRoundTripper lets client-go find the transport below, to close its connections.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.base }

// RoundTrip implements http.RoundTripper and changes nothing.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		t.count(req, err)
		return resp, err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		t.count(req, refusal(req, resp))
	}
	return resp, nil
}

func (c *counters) count(req *http.Request, err error) {
	f := fault.FromKube(verb(req), err)
	switch f.Reason {
	case fault.ReasonNotFound, fault.ReasonAlreadyExists, fault.ReasonCanceled:
		return
	}
	c.failures.Add(req.Context(), 1, metric.WithAttributes(
		attribute.String("verb", string(verb(req))), attribute.String("resource", resource(req.URL.Path)),
		attribute.String("class", f.Class.String()), attribute.String("reason", f.Reason)))
	if found, ok := f.Admission(); ok {
		c.admission.Add(req.Context(), 1, metric.WithAttributes(
			attribute.String("webhook", c.names.bounded(found.Name)), attribute.String("kind", found.Kind)))
	}
}

// refusal is what client-go will make of the answer, whose body is read and put back.
func refusal(req *http.Request, resp *http.Response) error {
	head, err := io.ReadAll(io.LimitReader(resp.Body, maxStatus))
	rest := io.Reader(resp.Body)
	if err != nil {
		rest = failing{err}
	}
	resp.Body = body{Reader: io.MultiReader(bytes.NewReader(head), rest), Closer: resp.Body}
	// JSON, or protobuf where the client asked for that.
	if object, _, err := scheme.Codecs.UniversalDeserializer().Decode(head, nil, nil); err == nil {
		if status, ok := object.(*metav1.Status); ok {
			return &apierrors.StatusError{ErrStatus: *status}
		}
	}
	return apierrors.NewGenericServerResponse(
		resp.StatusCode,
		req.Method,
		schema.GroupResource{},
		"",
		strings.TrimSpace(string(head)),
		0,
		true,
	)
}

type body struct {
	io.Reader
	io.Closer
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func verb(req *http.Request) fault.Verb {
	switch {
	case req.Method == http.MethodPost && req.URL.Query().Has("dryRun"):
		return fault.VerbDryRun
	case req.Method == http.MethodPost:
		return fault.VerbCreate
	case req.Method == http.MethodPut:
		return fault.VerbUpdate
	case req.Method == http.MethodPatch:
		return fault.VerbPatch
	case req.Method == http.MethodDelete:
		return fault.VerbDelete
	}
	return fault.VerbRead
}

// resource is the plural of a call's kind: what follows the version, and the namespace if there is
// one. Our code names it, so it has few values.
func resource(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	version := map[string]int{"api": 1, "apis": 2}[parts[0]]
	if version == 0 || len(parts) <= version+1 {
		return "none"
	}
	parts = parts[version+1:]
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	return parts[0]
}
