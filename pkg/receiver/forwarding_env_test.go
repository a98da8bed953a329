// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/receiver"
	"github.com/plumbline-ci/plumbline/pkg/receiver/forward"
)

// pipelinesAsCode is the setting with e.pac and e.unserved.
func (e *env) pipelinesAsCode() receiver.PipelinesAsCode {
	return receiver.PipelinesAsCode{
		Forwarder:    forward.New(func() string { return e.pac }),
		Runs:         func() bool { return e.pac != "" },
		Serves:       e.serves,
		Repositories: e.repositories(),
	}
}

func (e *env) serves(namespace string) bool { return namespace != e.unserved }

// live reads the Repositories that are served.
func (e *env) live() receiver.View {
	v := receiver.LiveView(e.client, systemNamespace, 0)
	read := v.Repository
	v.Repository = func(ctx context.Context, namespace, name string) (*pacv1alpha1.Repository, error) {
		if !e.serves(namespace) {
			return nil, apierrors.NewNotFound(pacv1alpha1.Resource("repositories"), name)
		}
		return read(ctx, namespace, name)
	}
	return v
}

// served returns a cache of the Repositories that are served.
func (e *env) served() cache.Indexer {
	e.t.Helper()
	indexer := e.repositories()
	for _, object := range indexer.List() {
		if r, is := object.(*pacv1alpha1.Repository); is && !e.serves(r.Namespace) {
			if err := indexer.Delete(r); err != nil {
				e.t.Fatal(err)
			}
		}
	}
	return indexer
}

// original stands in for Pipelines-as-Code.
type original struct {
	requests atomic.Int64
	header   http.Header // of the last request
	body     string
	target   string
}

// besides starts Pipelines-as-Code, which serves a namespace and answers every request alike.
func (e *env) besides(namespace string, status int) *original {
	o := &original{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			e.t.Error(err)
		}
		o.header, o.body, o.target = r.Header, string(body), r.Method+" "+r.URL.String()
		w.Header().Set("Location", "https://elsewhere.example")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "accepted by the original")
		o.requests.Add(1)
	}))
	e.t.Cleanup(server.Close)
	e.pac, e.unserved, e.cached = server.URL, namespace, e.live()
	return o
}
