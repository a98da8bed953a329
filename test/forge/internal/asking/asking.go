// SPDX-License-Identifier: Apache-2.0

// Package asking is how the tests of the forges call them: by hand, so that no client's library
// hides what is answered.
package asking

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
)

// Reply is an answer as it came.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
	Err    error
}

// Object is the body, which has to be one.
func (r Reply) Object(t *testing.T) map[string]any { return as[map[string]any](t, r) }

// List is the body, which has to be one of objects.
func (r Reply) List(t *testing.T) []map[string]any { return as[[]map[string]any](t, r) }

func as[T any](t *testing.T, r Reply) (v T) {
	t.Helper()
	if err := json.Unmarshal(r.Body, &v); err != nil {
		t.Fatalf("answer %d is no %T: %v: %s", r.Status, v, err, r.Body)
	}
	return v
}

// Ask makes a call; the body is a form or anything JSON.
func Ask(ctx context.Context, method, to string, header http.Header, body any) Reply {
	var reader io.Reader
	if form, isForm := body.(url.Values); isForm {
		reader = bytes.NewReader([]byte(form.Encode()))
		header.Set("Content-Type", "application/x-www-form-urlencoded")
	} else if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return Reply{Err: err}
		}
		reader = bytes.NewReader(data)
		header.Set("Content-Type", "application/json")
	}
	request, err := http.NewRequestWithContext(ctx, method, to, reader)
	if err != nil {
		return Reply{Err: err}
	}
	request.Header = header
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return Reply{Err: err}
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	return Reply{Status: response.StatusCode, Header: response.Header, Body: data, Err: err}
}

// Receiver records what arrives and answers with Code, which is 202 at first.
type Receiver struct {
	URL  string
	Got  chan *http.Request
	Body chan []byte
	Code atomic.Int64
}

// NewReceiver listens until the test ends.
func NewReceiver(t *testing.T) *Receiver {
	t.Helper()
	const most = 99
	r := &Receiver{Got: make(chan *http.Request, most), Body: make(chan []byte, most)}
	r.Code.Store(http.StatusAccepted)
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.URL = server.URL
	return r
}

func (rc *Receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	rc.Got <- r
	rc.Body <- body
	w.WriteHeader(int(rc.Code.Load()))
	_, _ = w.Write([]byte("seen"))
}
