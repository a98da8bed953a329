// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const configMap = "/api/v1/namespaces/" + namespace + "/configmaps/" + name

// server is an API server. The keys are paths; other paths do not exist.
type server struct {
	mu       sync.Mutex
	answers  map[string]int
	url      string
	requests []string
	hangs    chan struct{}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	code, url := s.answers[r.URL.Path], s.url
	s.requests = append(s.requests, r.URL.Path)
	s.mu.Unlock()
	if s.hangs != nil {
		select {
		case <-s.hangs:
		case <-r.Context().Done():
		}
	}
	if code == 0 {
		code = http.StatusNotFound
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if code != http.StatusOK {
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":`+strconv.Itoa(code)+`}`)
		return
	}
	_, _ = io.WriteString(w, `{"kind":"ConfigMap","apiVersion":"v1","data":{"consoleURL":"`+url+`"}}`)
}

func (s *server) client(t *testing.T) kubernetes.Interface {
	t.Helper()
	listener := httptest.NewServer(s)
	t.Cleanup(listener.Close)
	return kubernetes.NewForConfigOrDie(&rest.Config{Host: listener.URL})
}

func TestConsoleIsReadOnOpenShift(t *testing.T) {
	const console = "https://console.apps.example.com"
	for name, test := range map[string]struct {
		answers  map[string]int
		want     string
		next     time.Duration
		requests []string
	}{
		"OpenShift": {
			answers: map[string]int{apis: 200, configMap: 200}, want: console, next: every, requests: []string{apis, configMap},
		},
		"another cluster gets no request for the ConfigMap": {next: every, requests: []string{apis}},
		"a cluster whose console was removed":               {answers: map[string]int{apis: 200}, next: every, requests: []string{apis, configMap}},
		"no right to read it": {
			answers: map[string]int{apis: 200, configMap: 403}, next: every, requests: []string{apis, configMap},
		},
		"an outage says nothing": {
			answers: map[string]int{apis: 200, configMap: 500}, want: "https://before.example.com", next: again,
			requests: []string{apis, configMap},
		},
		"an outage of discovery says nothing": {
			answers: map[string]int{apis: 500}, want: "https://before.example.com", next: again, requests: []string{apis},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{answers: test.answers, url: console}
			c := &Console{}
			c.url.Store("https://before.example.com")
			if next := c.read(t.Context(), s.client(t)); next != test.next {
				t.Errorf("the next read is after %v, want %v", next, test.next)
			}
			if got := c.URL(); got != test.want {
				t.Errorf("the console is %q, want %q", got, test.want)
			}
			if !slices.Equal(slices.Compact(s.requests), test.requests) {
				t.Errorf("requests %q, want %q", s.requests, test.requests)
			}
		})
	}
}

// Two controllers of one process share the reads.
func TestFindReadsOnce(t *testing.T) {
	s := &server{answers: map[string]int{apis: 200, configMap: 200}, url: "https://console.example.com"}
	client, c := s.client(t), &Console{}
	for range 2 {
		if got := c.Find(t.Context(), client)(); got != s.url {
			t.Errorf("the console is %q, want %q", got, s.url)
		}
	}
	if len(s.requests) != 2 {
		t.Errorf("requests %q", s.requests)
	}
	var none *Console
	if none.Find(t.Context(), client) != nil {
		t.Error("a controller without a Console reads one")
	}
}

// An API server that does not respond does not stop the start, and never a caller of the function.
func TestFindDoesNotWaitForAHangingServer(t *testing.T) {
	s := &server{hangs: make(chan struct{})}
	client := s.client(t)
	defer close(s.hangs)
	c := &Console{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if got := c.Find(ctx, client)(); got != "" {
		t.Errorf("the console is %q", got)
	}
}
