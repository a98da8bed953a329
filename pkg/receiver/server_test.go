// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/plumbline-ci/plumbline/pkg/receiver"
)

// served is a Server that runs.
type served struct {
	t      *testing.T
	url    string
	client *http.Client
	stop   context.CancelFunc
	done   chan error
}

func serve(t *testing.T, s *receiver.Server) *served {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s.Logger = zap.NewNop().Sugar()
	run := &served{
		t: t, url: "http://" + listener.Addr().String(), client: http.DefaultClient, stop: stop, done: make(chan error, 1),
	}
	go func() { run.done <- s.Serve(ctx, listener) }()
	t.Cleanup(stop)
	return run
}

// get returns the status, 0 without an answer, and whether the connection will be closed.
func (s *served) get(path string) (status int, closing bool) {
	response, err := s.client.Get(s.url + path)
	if err != nil {
		return 0, false
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return response.StatusCode, response.Close
}

// read returns the status and the text of an answer, 0 and the error without one.
func (s *served) read(path string) (status int, text string) {
	response, err := s.client.Get(s.url + path)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(body)
}

// eventually polls until a path is answered with that status.
func (s *served) eventually(path string, status int) {
	s.t.Helper()
	s.eventuallySays(path, status, "")
}

// eventuallySays polls until a path is answered with that status, and with a text that ends so.
func (s *served) eventuallySays(path string, status int, end string) {
	s.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	for {
		got, text := s.read(path)
		if got == status && strings.HasSuffix(text, end) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			s.t.Fatalf("%s never answered %d and %q, but last %d %q", path, status, end, got, text)
		}
	}
}

func (s *served) ended() error {
	s.t.Helper()
	select {
	case err := <-s.done:
		return err
	case <-time.After(10 * time.Second):
		s.t.Fatal("the server did not end")
		return nil
	}
}

// /ready says what the receiver waits for, a line for each thing.
func TestReadiness(t *testing.T) {
	var synced atomic.Bool
	waits := func() []string {
		if synced.Load() {
			return nil
		}
		return []string{"GitEvents: not read yet", "Repositories: not read yet"}
	}
	server := receiver.NewServer(http.NotFoundHandler(), nil)
	server.Waits, server.DrainWait = waits, time.Millisecond
	run := serve(t, server)
	run.eventually("/live", http.StatusOK)
	const want = "waiting for:\nGitEvents: not read yet\nRepositories: not read yet\n"
	run.eventuallySays("/ready", http.StatusServiceUnavailable, want)
	synced.Store(true)
	run.eventually("/ready", http.StatusOK)
	run.stop()
	if err := run.ended(); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// GET / is answered for load balancers that probe this path, also before the caches are filled. All
// other requests are passed on as deliveries.
func TestRootAnswersLoadBalancers(t *testing.T) {
	var passedOn atomic.Int64
	server := receiver.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		passedOn.Add(1)
		w.WriteHeader(http.StatusTeapot)
	}), nil)
	server.Waits, server.DrainWait = func() []string { return []string{"GitEvents"} }, 0
	run := serve(t, server)
	response, err := http.Get(run.url + "/")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil || response.StatusCode != http.StatusOK || !response.Close ||
		!strings.Contains(string(body), "Plumbline") || strings.Count(string(body), "\n") != 1 {
		t.Errorf("GET / is answered %d %q, closing %t, %v, want 200 and a line that says Plumbline", response.StatusCode,
			body, response.Close, err)
	}
	if n := passedOn.Load(); n != 0 {
		t.Errorf("GET / is passed on as %d deliveries", n)
	}
	for _, request := range []string{"POST /", "HEAD /", "PUT /", "GET /index.html", "POST /live"} {
		method, path, _ := strings.Cut(request, " ")
		other, err := http.NewRequestWithContext(t.Context(), method, run.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(other)
		if err != nil {
			t.Fatal(err)
		}
		if _ = response.Body.Close(); response.StatusCode != http.StatusTeapot {
			t.Errorf("%s is answered %d, want what deliveries are", request, response.StatusCode)
		}
	}
	run.stop()
	if err := run.ended(); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered, release := make(chan struct{}, 1), make(chan struct{})
		var cancelled atomic.Bool
		server := receiver.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				entered <- struct{}{}
				<-release
				cancelled.Store(r.Context().Err() != nil)
			}
			w.WriteHeader(http.StatusAccepted)
		}), nil)
		server.Waits, server.Logger = func() []string { return nil }, zap.NewNop().Sugar()
		ctx, stop := context.WithCancel(t.Context())
		listener, ended := make(pipes), make(chan error)
		go func() { ended <- server.Serve(ctx, listener) }()
		client := &http.Client{Transport: &http.Transport{DialContext: listener.dial}}
		defer client.CloseIdleConnections()
		run := &served{t: t, url: "http://receiver", client: client}
		if _, closing := run.get("/hook"); closing {
			t.Error("a connection is closed before the drain")
		}

		slow := make(chan int, 1)
		go func() { status, _ := run.get("/slow"); slow <- status }()
		<-entered
		stop()
		synctest.Wait()
		if status, text := run.read("/ready"); status != http.StatusServiceUnavailable || text != "draining\n" {
			t.Errorf("while draining, /ready answers %d %s", status, text)
		}
		if status, closing := run.get("/hook"); status != http.StatusAccepted || !closing {
			t.Errorf("while draining: status %d, Connection: close %v; want 202 and true", status, closing)
		}
		began := time.Now()
		if _, open := <-listener; open || time.Since(began) != server.DrainWait {
			t.Errorf("the listener is closed after %v, want %v", time.Since(began), server.DrainWait)
		}
		close(release)
		if status := <-slow; status != http.StatusAccepted || cancelled.Load() {
			t.Errorf("the delivery in flight: status %d, cancelled %v", status, cancelled.Load())
		}
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

func TestListenerFailureEndsServe(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	server := receiver.NewServer(http.NotFoundHandler(), nil)
	server.Logger = zap.NewNop().Sugar()
	if err := server.Serve(t.Context(), listener); err == nil {
		t.Error("Serve returned nil for a listener that is closed")
	}
}

// A delivery that never ends makes the process not live. It stays ready for other deliveries.
func TestLivenessByProgress(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	server := receiver.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stuck" {
			close(entered)
			<-release
		}
		w.WriteHeader(http.StatusAccepted)
	}), nil)
	server.Waits, server.DrainWait, server.StuckAfter = func() []string { return nil }, 0, 200*time.Millisecond
	run := serve(t, server)
	run.eventually("/ready", http.StatusOK)
	if status, _ := run.get("/live"); status != http.StatusOK {
		t.Errorf("/live answers %d before there is a delivery, want 200", status)
	}
	stuck := make(chan struct{})
	go func() { defer close(stuck); run.get("/stuck") }()
	<-entered
	run.eventually("/live", http.StatusServiceUnavailable)
	if status, _ := run.get("/hook"); status != http.StatusAccepted {
		t.Errorf("another delivery is answered %d while one is stuck, want 202", status)
	}
	if status, _ := run.get("/ready"); status != http.StatusOK {
		t.Errorf("/ready answers %d while one is stuck, want 200", status)
	}
	close(release)
	<-stuck
	run.eventually("/live", http.StatusOK)
	run.stop()
	if err := run.ended(); err != nil {
		t.Errorf("Serve: %v", err)
	}
}
