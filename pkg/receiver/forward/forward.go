// SPDX-License-Identifier: Apache-2.0

// Package forward sends requests to the controller of Pipelines-as-Code while it serves other
// namespaces of the cluster (docs/adr/0060).
package forward

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// Header marks a forwarded request. A receiver never forwards such a request again.
	Header = "Plumbline-Forwarded"

	// timeout bounds one request. Pipelines-as-Code answers before it processes a delivery, and
	// Git services give up after 10 s.
	timeout = 5 * time.Second
	// dialTimeout bounds the connection, which stays within the cluster.
	dialTimeout = 2 * time.Second
	// maxInFlight is a quarter of fairness.MaxInFlight: a Pipelines-as-Code that does not answer
	// must not use the slots that other namespaces need.
	maxInFlight = 40
	// maxAnswer is how much of an answer is passed on. Those of Pipelines-as-Code are one sentence.
	maxAnswer = 4 << 10
)

// Response is the answer of Pipelines-as-Code.
type Response struct {
	Status int
	Body   string
}

// Forwarder forwards requests. It is safe for concurrent use.
type Forwarder struct {
	url       func() string
	transport http.RoundTripper
	slots     chan struct{}
	timeout   time.Duration
}

// New returns a Forwarder. The function returns where Pipelines-as-Code listens, as scheme and
// host; "" means that this is not known.
func New(url func() string) *Forwarder {
	return &Forwarder{
		url:     url,
		slots:   make(chan struct{}, maxInFlight),
		timeout: timeout,
		// It has no Proxy: deliveries stay in the cluster whatever the environment says. Without
		// keep-alive no request meets a connection that is being closed, and none is sent twice.
		transport: &http.Transport{
			DialContext:            (&net.Dialer{Timeout: dialTimeout}).DialContext,
			TLSHandshakeTimeout:    dialTimeout,
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: 64 << 10,
		},
	}
}

// Forward sends a request and its body, and returns the answer. Redirects are not followed. An
// error is Transient and means that the request has to be sent again later: Pipelines-as-Code did
// not answer, or did not answer like a server that has the request.
func (f *Forwarder) Forward(ctx context.Context, r *http.Request, body []byte) (Response, error) {
	to, err := url.Parse(f.url())
	if err != nil || to.Host == "" {
		return Response{}, fault.Transientf(reasonUnknown, "pipelines-as-code-url is not known yet, or is invalid")
	}
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	default:
		return Response{}, fault.Transientf(reasonBusy, "%d requests to Pipelines-as-Code are in flight", maxInFlight)
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	response, err := f.send(request(ctx, r, to, body))
	if err != nil {
		return Response{}, fault.Transientf(reasonUnavailable, "Pipelines-as-Code does not answer at %s: %w", to, err)
	}
	switch {
	case response.Status == http.StatusLoopDetected:
		return Response{}, fault.Transientf(ReasonLoop, "pipelines-as-code-url leads to a receiver of Plumbline: %s", to)
	case response.Status < http.StatusOK, response.Status >= http.StatusInternalServerError:
		return Response{}, fault.Transientf(reasonUnavailable, "%s answers %d", to, response.Status)
	case response.Status >= http.StatusMultipleChoices && response.Status < http.StatusBadRequest:
		return Response{}, fault.Transientf(reasonUnavailable, "%s redirects (%d): is the scheme of "+
			"pipelines-as-code-url right?", to, response.Status)
	}
	return response, nil
}

func (f *Forwarder) send(r *http.Request) (Response, error) {
	answer, err := f.transport.RoundTrip(r) // unlike a client, it follows no redirect
	if err != nil {
		return Response{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return Response{}, fmt.Errorf("reading the answer: %w", err)
	}
	return Response{Status: answer.StatusCode, Body: strings.ToValidUTF8(string(text), "")}, nil
}

// request returns the request as it is sent: method, path, query, headers and body of the one that
// has arrived. Where it goes is only the configuration's decision.
func request(ctx context.Context, r *http.Request, to *url.URL, body []byte) *http.Request {
	header := r.Header.Clone()
	for _, value := range header["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			header.Del(textproto.TrimString(name))
		}
	}
	for _, name := range hopByHop() {
		header.Del(name)
	}
	header.Set(Header, "1")
	out := &http.Request{
		Method: r.Method,
		URL: &url.URL{
			Scheme:   to.Scheme,
			Host:     to.Host,
			Path:     r.URL.Path,
			RawPath:  r.URL.RawPath,
			RawQuery: r.URL.RawQuery,
		},
		Host:          to.Host,
		Header:        header,
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
	}
	return out.WithContext(ctx)
}

// hopByHop are headers of one connection (RFC 9110, section 7.6.1, and what older clients send).
func hopByHop() []string {
	return []string{
		"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "Expect",
	}
}
