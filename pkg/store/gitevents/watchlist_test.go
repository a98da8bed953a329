// SPDX-License-Identifier: Apache-2.0

package gitevents_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/client/clientset/versioned"
	plumblineclient "github.com/plumbline-ci/plumbline/pkg/client/injection/client"
	"github.com/plumbline-ci/plumbline/pkg/store/gitevents"
)

// An API server that streams its lists has client-go trim each object twice. A
// function that receives whole events gets each event once, and no trimmed one. A trimmed event
// would look like one of a Repository without a URL, and would be refused.
func TestBeforeTrimGetsWholeEventsOnly(t *testing.T) {
	t.Parallel()
	event := open("push-1", "north/app")
	event.Kind, event.APIVersion = "GitEvent", v1alpha1.SchemeGroupVersion.String()
	event.Spec.Provider, event.Spec.Repository.URL = "github", "https://git.example/north/app"
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("sendInitialEvents") != "true" {
			http.Error(rw, "this server streams", http.StatusNotImplemented)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(rw, `{"type":"ADDED","object":%s}{"type":"BOOKMARK","object":{"kind":"GitEvent","apiVersion":"plumbline.dev/v1alpha1","metadata":`+
			`{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}`, marshal(t, event))
		rw.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), plumblineclient.Key{},
		versioned.NewForConfigOrDie(&rest.Config{Host: server.URL})))
	t.Cleanup(cancel) // before the server waits for its streams
	var mu sync.Mutex
	var told []string
	w := gitevents.New(namespace)
	w.Informer(ctx)
	w.BeforeTrim(func(e *v1alpha1.GitEvent) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, e.Name+" of "+e.Spec.Repository.URL)
	})
	if err := w.Start(ctx); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if got := names(w.Of("north", "app")); got != "push-1" || len(told) != 1 ||
		told[0] != "push-1 of https://git.example/north/app" {
		t.Errorf("the cache has %q, told of %q", got, told)
	}
}
