// SPDX-License-Identifier: Apache-2.0

package forward_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/receiver/forward"
)

// A Pipelines-as-Code that does not answer holds neither a delivery for long nor many deliveries.
func TestHungPipelinesAsCode(t *testing.T) {
	arrived, end := make(chan struct{}, forward.MaxInFlight), make(chan struct{})
	hung := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-end
	}))
	defer hung.Close()
	f := forward.New(func() string { return hung.URL })
	r := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
	var all sync.WaitGroup
	for range forward.MaxInFlight {
		all.Go(func() {
			if _, err := f.Forward(t.Context(), r, nil); err != nil {
				t.Error(err)
			}
		})
	}
	for range forward.MaxInFlight {
		<-arrived
	}
	if _, err := f.Forward(t.Context(), r, nil); fault.Of(err).Reason != "PipelinesAsCodeBusy" {
		t.Errorf("one more: %v", err)
	}
	close(end)
	all.Wait()
}

func TestForwardTimesOut(t *testing.T) {
	end := make(chan struct{})
	hung := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	defer hung.Close()
	defer close(end)
	f := forward.New(func() string { return hung.URL }).Within(time.Millisecond)
	_, err := f.Forward(t.Context(), httptest.NewRequest(http.MethodPost, "/", http.NoBody), nil)
	if got := fault.Of(err); got.Reason != "PipelinesAsCodeUnavailable" || got.Class != fault.Transient {
		t.Errorf("%v", err)
	}
}

// The request line of a sender may name a host. It decides nothing.
func TestForwardGoesOnlyToTheConfiguredHost(t *testing.T) {
	pac := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Host+" "+r.URL.String())
	}))
	defer pac.Close()
	f := forward.New(func() string { return pac.URL })
	for _, target := range []string{"http://evil.example/a%2Fb?c", "/a%2Fb?c", "//evil.example/a%2Fb?c"} {
		r := httptest.NewRequest(http.MethodPost, target, http.NoBody)
		r.Host = "evil.example"
		got, err := f.Forward(t.Context(), r, nil)
		if err != nil || !strings.HasPrefix(got.Body, strings.TrimPrefix(pac.URL, "http://")+" /") ||
			!strings.HasSuffix(got.Body, "/a%2Fb?c") {
			t.Errorf("%s: %s, %v", target, got.Body, err)
		}
	}
}

func TestLongAnswersAreCut(t *testing.T) {
	pac := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("ä", 10<<20))
	}))
	defer pac.Close()
	got, err := forward.New(func() string { return pac.URL }).
		Forward(t.Context(), httptest.NewRequest(http.MethodPost, "/", http.NoBody), nil)
	if err != nil || len(got.Body) > 5000 {
		t.Errorf("%d bytes, %v", len(got.Body), err)
	}
}
