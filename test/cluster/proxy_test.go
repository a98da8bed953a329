// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/client-go/rest"
)

const runsPath = "/apis/tekton.dev/v1/namespaces/ci/pipelineruns"

// stage is a proxy in front of a server that counts what reaches it.
type stage struct {
	*Proxy
	reached atomic.Int64
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.reached.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprintf(w, "hello %s", r.Header.Get("Authorization"))
	}))
	t.Cleanup(server.Close)
	proxy, err := NewProxyTo(&rest.Config{Host: server.URL})
	must(t, err)
	t.Cleanup(proxy.Close)
	s.Proxy = proxy
	return s
}

// call makes a request of its own connection. An answer is its code and body; none is "dropped".
func (s *stage) call(t *testing.T, method, path, body string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	must(t, err)
	request.Header.Set("Authorization", "Bearer abc")
	request.Header.Set("Content-Type", "application/json")
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "dropped"
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return "dropped"
	}
	return fmt.Sprintf("%d %s", response.StatusCode, data)
}

const forwarded = "200 hello Bearer abc"

func TestRuleActsOnChosenCalls(t *testing.T) {
	creates := func(c Call) bool { return c.Is("create", "pipelineruns") }
	for _, test := range []struct {
		about   string
		rule    Rule
		want    []string // of four creates
		reached int64
	}{
		{"no From and no Count is every call", Rule{Match: creates, Do: Drop()},
			[]string{"dropped", "dropped", "dropped", "dropped"}, 0},
		{"From 2, Count 1 is the second call only", Rule{Match: creates, From: 2, Count: 1, Do: Drop()},
			[]string{forwarded, "dropped", forwarded, forwarded}, 3},
		{"From 3 without Count is all from the third", Rule{From: 3, Do: Drop()},
			[]string{forwarded, forwarded, "dropped", "dropped"}, 2},
		{"what does not match is forwarded", Rule{Match: func(c Call) bool { return c.Verb == "delete" }, Do: Drop()},
			[]string{forwarded, forwarded, forwarded, forwarded}, 4},
		{"ApplyThenDrop lets the write land", Rule{From: 1, Count: 1, Do: ApplyThenDrop()},
			[]string{"dropped", forwarded, forwarded, forwarded}, 4},
	} {
		t.Run(test.about, func(t *testing.T) {
			s := newStage(t)
			armed := s.Add(test.rule)
			var got []string
			hits := 0
			for range 4 {
				answer := s.call(t, http.MethodPost, runsPath, "{}")
				got = append(got, answer)
				if answer != forwarded {
					hits++
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
			if reached := s.reached.Load(); reached != test.reached {
				t.Errorf("%d calls reached the server, want %d", reached, test.reached)
			}
			if armed.Hits() != hits {
				t.Errorf("Hits is %d, want %d", armed.Hits(), hits)
			}
		})
	}
}

func TestRuleWithDurationEnds(t *testing.T) {
	armed, first := &Armed{rule: Rule{For: time.Minute}}, time.Unix(1000, 0)
	for _, after := range []time.Duration{0, time.Minute - 1, time.Minute} {
		if got := armed.takes(Call{Time: first.Add(after)}); got != (after < time.Minute) {
			t.Errorf("after %v it acts: %v", after, got)
		}
	}
	if armed.Hits() != 2 {
		t.Errorf("%d hits, want 2", armed.Hits())
	}
}

func TestHoldForwardsWhenReleased(t *testing.T) {
	s := newStage(t)
	release, seen := make(chan struct{}), make(chan Call, 1)
	s.OnCall(func(c Call) { seen <- c })
	s.Add(Rule{Do: Hold(release)})
	answer := make(chan string, 1)
	go func() { answer <- s.call(t, http.MethodPost, runsPath, `{"metadata":{"name":"x"}}`) }()
	if call := <-seen; call.Name != "x" || call.N != 1 {
		t.Errorf("OnCall got %+v", call)
	}
	select {
	case got := <-answer:
		t.Fatalf("a held call was answered: %s", got)
	case <-time.After(200 * time.Millisecond):
	}
	if reached := s.reached.Load(); reached != 0 {
		t.Errorf("a held call reached the server")
	}
	close(release)
	if got := <-answer; got != forwarded {
		t.Errorf("after the release: %s", got)
	}
}

func TestHeldCallOfGoneClientIsNotForwarded(t *testing.T) {
	s := newStage(t)
	release := make(chan struct{})
	s.Add(Rule{Count: 1, Do: Hold(release)})
	client := &http.Client{Timeout: 100 * time.Millisecond}
	if response, err := client.Get(s.URL + runsPath); err == nil {
		_ = response.Body.Close()
		t.Fatal("a held call was answered")
	}
	// The proxy learns of the end through the connection, at some moment.
	err := Poll(within(t, 10*time.Second), 10*time.Millisecond, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.conns) != 0 {
			return fmt.Errorf("%d connections", len(s.conns))
		}
		return nil
	})
	must(t, err)
	close(release)
	if got := s.call(t, http.MethodGet, runsPath, ""); got != forwarded || s.reached.Load() != 1 {
		t.Errorf("%s, and %d calls reached the server, want the second only", got, s.reached.Load())
	}
}

func TestClientEndsAfterItsCallTookEffect(t *testing.T) {
	s := newStage(t)
	ctx, end := context.WithCancel(t.Context())
	reached := int64(0)
	s.Add(Rule{Count: 1, Do: ApplyThenEnd(func() {
		reached = s.reached.Load()
		end()
	})})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+runsPath, strings.NewReader("{}"))
	must(t, err)
	if response, err := http.DefaultClient.Do(request); err == nil {
		_ = response.Body.Close()
		t.Error("the call was answered")
	}
	if reached != 1 {
		t.Errorf("%d calls had reached the server when the client ended, want 1", reached)
	}
}

func TestAnswerLooksLikeAnAPIServer(t *testing.T) {
	s := newStage(t)
	s.Add(Rule{Count: 1, Do: Fault(TooManyRequests())})
	response, err := http.Get(s.URL + runsPath)
	must(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	got := []string{response.Status, response.Header.Get("Content-Type"), response.Header.Get("Retry-After"),
		strings.TrimSpace(string(body))}
	want := []string{"429 Too Many Requests", "application/json", "1",
		`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",` +
			`"message":"the server has received too many requests and has asked us to try again later",` +
			`"reason":"TooManyRequests","details":{"retryAfterSeconds":1},"code":429}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	s.Add(Rule{Count: 1, Do: ApplyThenAnswer(500, EtcdTimeout())})
	if got := s.call(t, http.MethodPost, runsPath, "{}"); !strings.HasPrefix(got, "500 ") || s.reached.Load() != 1 {
		t.Errorf("ApplyThenAnswer: %s, and %d calls reached the server", got, s.reached.Load())
	}
}

func TestCutLosesEverythingUntilRestored(t *testing.T) {
	s := newStage(t)
	var got []string
	try := func() { got = append(got, s.call(t, http.MethodGet, runsPath, "")) }
	try()
	s.Cut()
	try()
	s.Restore()
	try()
	if diff := cmp.Diff([]string{forwarded, "dropped", forwarded}, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if n := len(s.Calls()); n != 2 {
		t.Errorf("%d calls in the log; a cut one is none", n)
	}
}

func TestLogHasTheAnswers(t *testing.T) {
	s := newStage(t)
	removed := s.Add(Rule{Do: Fault(Unavailable())})
	s.call(t, http.MethodGet, runsPath+"/x", "")
	removed.Remove()
	s.Add(Rule{Do: Drop()})
	s.call(t, http.MethodDelete, runsPath+"/x", "")
	want := []Call{
		{N: 1, Verb: "get", Group: "tekton.dev", Resource: "pipelineruns", Namespace: "ci", Name: "x", Status: 503},
		{N: 2, Verb: "delete", Group: "tekton.dev", Resource: "pipelineruns", Namespace: "ci", Name: "x"},
	}
	if diff := cmp.Diff(want, s.Calls(), cmpopts.IgnoreFields(Call{}, "Time", "UserAgent")); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	s.Reset()
	if got := s.call(t, http.MethodGet, runsPath, ""); got != forwarded || len(s.Calls()) != 1 {
		t.Errorf("after Reset: %s, log %v", got, s.Calls())
	}
}

// An error on one connection to the server must cost only one call: after a 401 the API server
// ends an HTTP/2 connection, which all calls would share.
func TestCallsDoNotShareServerConnection(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	trust := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	proxy, err := NewProxyTo(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: trust}})
	must(t, err)
	t.Cleanup(proxy.Close)
	s := &stage{Proxy: proxy}
	if got := s.call(t, http.MethodGet, "/version", ""); got != "200 HTTP/1.1" {
		t.Errorf("got %q", got)
	}
}
