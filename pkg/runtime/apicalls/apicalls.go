// SPDX-License-Identifier: Apache-2.0

// Package apicalls counts this process's calls that the API server refuses. knative's client
// metrics count successful calls only.
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
	// maxStatus is how many bytes of a refusal are read to classify it; a Status has a few hundred.
	maxStatus = 64 << 10
)

// Count changes a configuration so that its clients count failed calls:
//
//   - plumbline.kube.failures (verb, resource, class, reason): all of them, by pkg/fault's class
//     and reason, with each attempt of client-go. NotFound, AlreadyExists and calls that a shutdown
//     interrupts are not counted.
//   - plumbline.admission.failures (webhook, kind): those because of an admission webhook or
//     policy, by fault.Admission. There are at most 50 names; later ones count as "other".
//
// Call it before clients are created from the configuration.
func Count(cfg *rest.Config, provider metric.MeterProvider) error {
	meter := provider.Meter(meterName)
	failures, errA := meter.Int64Counter("plumbline.kube.failures", metric.WithUnit("{call}"),
		metric.WithDescription("Calls that the API server refused or did not answer, by verb, resource, class and reason"))
	admission, errB := meter.Int64Counter(
		"plumbline.admission.failures",
		metric.WithUnit("{call}"),
		metric.WithDescription(
			"Calls that failed because of an admission webhook or policy, by its name and the kind of failure",
		),
	)
	if err := errors.Join(errA, errB); err != nil {
		return fmt.Errorf("creating the metrics of API server calls: %w", err)
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

// refusal returns the error that client-go will return for the response. It reads the body and puts
// it back.
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
	return apierrors.NewGenericServerResponse(resp.StatusCode, req.Method, schema.GroupResource{}, "",
		strings.TrimSpace(string(head)), 0, true)
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

// resource returns the resource in a call's path: the part after the version, and after the
// namespace if there is one. It has few values, because our code names them.
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
