// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/test/cluster"
)

// serverErrorRows: K29 to K34, answers of a working API server.
func serverErrorRows() []row {
	const create, read, update, patched = fault.VerbCreate, fault.VerbRead, fault.VerbUpdate, fault.VerbPatch
	const away, unsupported = fault.ReasonUnavailable, fault.ReasonNotSupported
	maps := corev1.SchemeGroupVersion.WithResource("configmaps")
	things := schema.GroupVersionResource{Group: "away.example.com", Version: "v1", Resource: "things"}
	text, calendar := patch(maps, ci, "kube-root-ca.crt", "x"), get(maps, ci, "")
	text.headers = map[string]string{"Content-Type": "text/plain"}
	calendar.headers = map[string]string{"Accept": "text/calendar"}
	nameless := call{method: http.MethodPut, resource: maps, namespace: ci, body: configMap("")}
	return []row{
		{id: "K29", when: "priority and fairness refuses", verb: create, cause: tooMany, class: fault.Throttled,
			reason: fault.ReasonThrottled, wait: time.Second},
		{id: "K30", when: "an aggregated API server is away", verb: read, cause: asked(get(things, ci, "")), reason: away},
		{id: "K30", when: "an API server is shutting down (written)", verb: create,
			cause: written(apierrors.NewServiceUnavailable("apiserver is shutting down")), reason: away},
		{id: "K31", when: "a proxy in front of the API server answers 502", verb: create,
			cause: proxied(http.StatusBadGateway), reason: away, unknown: true},
		{id: "K31", when: "it answers 503", verb: patched, cause: proxied(http.StatusServiceUnavailable), reason: away,
			unknown: true},
		{id: "K31", when: "it answers 504", verb: create, cause: proxied(http.StatusGatewayTimeout),
			reason: fault.ReasonTimeout, unknown: true},
		{id: "K32", when: "the API server does not accept our token", verb: create, cause: asUnknownToken,
			reason: fault.ReasonUnauthorized},
		{id: "K34", when: "a method is not allowed", verb: update, cause: asked(nameless), class: fault.Operator,
			reason: unsupported},
		{id: "K34", when: "a media type is not spoken", verb: read, cause: asked(calendar), class: fault.Operator,
			reason: unsupported},
		{id: "K34", when: "a kind of patch is not known", verb: patched, cause: asked(text), class: fault.Operator,
			reason: unsupported},
	}
}

// written is an error that no API server can be made to send here, in the words of apimachinery.
func written(err error) func(*testing.T, *environment) error {
	return func(*testing.T, *environment) error { return err }
}

// tooMany: one request of the account waits for a webhook. Its priority level has no seat for
// another one. The API server's Retry-After grows with its refusals in the last second, so few may
// be refused here.
func tooMany(t *testing.T, w *environment) error {
	config := w.as(t, "busy")
	w.install(t, w.answering("k29", "/held"))
	return until(t, func() error {
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			_ = create("k29").dry().do(ctx, config)
		}()
		defer func() { <-over }()
		defer cancel()
		select {
		case <-w.judge.held:
		case <-over:
			return nil // the webhook is not known yet
		}
		err := create("").dry().do(ctx, config)
		if !apierrors.IsTooManyRequests(err) {
			return nil // the other one has just ended, or its right is not known yet
		}
		return err
	})
}

// behind is a new PipelineRun that a proxy in front of the API server changes.
func behind(label string, do cluster.Action) func(*testing.T, *environment) error {
	return func(t *testing.T, w *environment) error {
		proxy, err := cluster.NewProxy(w.Cluster)
		must(t, err)
		t.Cleanup(proxy.Close)
		proxy.Add(cluster.Rule{Do: do})
		config := w.RESTConfig()
		config.Host, config.TLSClientConfig = proxy.URL, rest.TLSClientConfig{}
		return create(label).do(t.Context(), config)
	}
}

// proxied is the answer of the proxy itself.
func proxied(code int) func(*testing.T, *environment) error {
	return behind("k31", cluster.Page(code, "<html><h1>"+http.StatusText(code)+"</h1></html>"))
}

func asUnknownToken(t *testing.T, w *environment) error {
	config := w.RESTConfig()
	config.BearerToken = "wrong"
	return create("k32").do(t.Context(), config)
}

// transportRows: K35 and K36, no answer at all.
func transportRows() []row {
	const created, read, gone = fault.VerbCreate, fault.VerbRead, fault.ReasonUnreachable
	unknown := func(w *environment) *rest.Config {
		config := w.RESTConfig()
		config.CAData = w.judge.certificate
		return config
	}
	expired := func(w *environment) *rest.Config {
		config := rest.CopyConfig(w.odd)
		config.TLSClientConfig = rest.TLSClientConfig{CAData: w.judge.certificate}
		return config
	}
	refused := func(w *environment) *rest.Config {
		config := w.RESTConfig()
		config.Host = "https://127.0.0.1:1"
		return config
	}
	through := func(reach func(*environment) *rest.Config) func(*testing.T, *environment) error {
		return func(t *testing.T, w *environment) error { return create("k35").do(t.Context(), reach(w)) }
	}
	return []row{
		{id: "K35", when: "nothing listens where the API server should be", verb: created, cause: through(refused),
			reason: gone, unknown: true},
		{id: "K35", when: "the API server's certificate has expired", verb: created, cause: through(expired), reason: gone,
			unknown: true},
		{id: "K35", when: "its certificate is of an unknown authority", verb: created, cause: through(unknown), reason: gone,
			unknown: true},
		{id: "K35", when: "the connection is closed without an answer", verb: created, cause: behind("k35", cluster.Drop()),
			reason: gone, unknown: true, varies: true},
		{id: "K35", when: "our own limit lets nothing through in time", verb: created, cause: limited, reason: gone,
			unknown: true},
		{id: "K36", when: "our process ends", verb: created, cause: canceled, reason: fault.ReasonCanceled, unknown: true},
		{id: "K36", when: "our process ends, at a read", verb: read, cause: canceled, reason: fault.ReasonCanceled},
	}
}

// limited: the first request takes the only seat for the next minute.
func limited(t *testing.T, w *environment) error {
	config := w.RESTConfig()
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(0.01, 1)
	config.RateLimiter.Accept()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	return create("k35").do(ctx, config)
}

func canceled(t *testing.T, w *environment) error {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the process ends"))
	return create("k36").do(ctx, w.config)
}
