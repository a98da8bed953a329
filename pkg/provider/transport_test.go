// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	return srv.URL
}

func do(t *testing.T, tr *Transport, method, url string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tr.Within(local()).RoundTrip(req)
	if resp != nil {
		t.Cleanup(func() { _ = resp.Body.Close() })
	}
	return resp, err
}

func TestTransportLimits(t *testing.T) {
	cases := []struct {
		name    string
		limits  Limits
		handler http.HandlerFunc
		says    string
	}{
		{"no header in time", Limits{Headers: 100 * time.Millisecond},
			func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, ""},
		{"a body that never ends", Limits{Total: 300 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte("x"))
				_ = http.NewResponseController(w).Flush()
				<-time.After(50 * time.Millisecond)
			}
		}, "in time"},
		{"too much of it", Limits{Answer: 10}, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(strings.Repeat("x", 11)))
		}, "larger than 10 bytes"},
		{"half an answer", Limits{Answer: 10}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			_, _ = w.Write([]byte("x"))
		}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			url, tr := serve(t, c.handler), NewTransport(c.limits)
			for method, unknown := range map[string]bool{"GET": false, "POST": true} {
				start := time.Now()
				_, err := do(t, tr, method, url)
				f := fault.Of(err)
				if f == nil || f.Class != fault.Transient || f.Unknown != unknown || !strings.Contains(f.Message, c.says) {
					t.Errorf("%s: got %+v", method, f)
				}
				if took := time.Since(start); took > HeaderTimeout {
					t.Errorf("%s took %s", method, took)
				}
			}
		})
	}
}

// B15, X1: a service that accepts connections and does not answer delays a call by at most 30 s,
// whatever is missing.
func TestTransportDefaultLimits(t *testing.T) {
	tr := NewTransport(Limits{})
	want := Limits{Connect: 5 * time.Second, Headers: 15 * time.Second, Total: 30 * time.Second, Silence: 10 * time.Second,
		Ping: 5 * time.Second, Answer: 8 << 20}
	if tr.limits != want {
		t.Errorf("the limits are %+v, want %+v", tr.limits, want)
	}
	if p := tr.proxied; p.TLSHandshakeTimeout != want.Connect || p.ResponseHeaderTimeout != want.Headers {
		t.Errorf("a connection has %v for its handshake and %v for the headers", p.TLSHandshakeTimeout,
			p.ResponseHeaderTimeout)
	}
}

func TestTransportReturnsWholeAnswer(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("0123456789")) })
	resp, err := do(t, NewTransport(Limits{Answer: 10}), "GET", url)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "0123456789" {
		t.Errorf("%q, %v", body, err)
	}
}

func TestTransportClassifiesAnswers(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"message":"Not Found","private":"x"}`))
	})
	_, err := do(t, NewTransport(Limits{}), "GET", url)
	var answer *StatusError
	if !errors.As(err, &answer) || answer.Code != http.StatusNotFound || answer.Message != "Not Found" ||
		StatusCode(err) != 404 {
		t.Errorf("got %#v", err)
	}
	if !fault.Is(err, fault.Operator) {
		t.Errorf("got %v, want an Operator fault", err)
	}
}

func TestTransportMarksUnsentWrites(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	_, err := do(t, NewTransport(Limits{}), "POST", srv.URL)
	_, again := do(t, NewTransport(Limits{}), "POST", srv.URL)
	if f := fault.Of(err); f == nil || f.Class != fault.Transient || f.Unknown || f.Message != fault.Of(again).Message {
		t.Errorf("got %+v", f)
	}
}
