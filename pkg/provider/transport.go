// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
)

// The time limits of one call to a Git service (X1 of docs/errors.md), and the maximum size of an
// answer. A service that exceeds one counts as not answering.
const (
	ConnectTimeout = 5 * time.Second
	HeaderTimeout  = 15 * time.Second
	CallTimeout    = 30 * time.Second
	MaxAnswer      = 8 << 20 // GitHub truncates its largest list, a tree, at 7 MB
	// A connection that has been silent for SilenceTimeout gets a ping, and is closed after
	// PingTimeout. All calls share one connection. Without the ping each would wait for its own
	// time limit, as long as the kernel retransmits.
	SilenceTimeout = 10 * time.Second
	PingTimeout    = 5 * time.Second
)

// ErrTooLarge is wrapped by the error of a call whose answer is too large to be read.
var ErrTooLarge = errors.New("the answer is larger")

// Limits are the limits of one call; a zero field means the constant of the same name.
type Limits struct {
	Connect, Headers, Total, Silence, Ping time.Duration
	// Answer is in bytes.
	Answer int64
}

// Transport is the HTTP transport of every provider; Within returns a round tripper. It never
// repeats a call and reads each answer completely. Every status except 2xx and redirects becomes an
// error with a class: a *StatusError for an answer, a *fault.Error without one.
type Transport struct {
	// Provider names the Git service in metrics.
	Provider string

	limits   Limits
	metrics  callMetrics
	resolver *net.Resolver // nil means the machine's

	proxied *http.Transport
	guarded recent.Map[string, *http.Transport] // connection pools by the key of their policy
}

// keepAlive is the interval of TCP keep-alives on an idle connection.
const keepAlive = 30 * time.Second

// NewTransport returns a Transport with its own connection pool. It uses the proxy of the
// environment.
func NewTransport(limits Limits) *Transport {
	limits = Limits{
		Connect: cmp.Or(limits.Connect, ConnectTimeout),
		Headers: cmp.Or(limits.Headers, HeaderTimeout),
		Total:   cmp.Or(limits.Total, CallTimeout),
		Silence: cmp.Or(limits.Silence, SilenceTimeout),
		Ping:    cmp.Or(limits.Ping, PingTimeout),
		Answer:  cmp.Or(limits.Answer, MaxAnswer),
	}
	t := &Transport{limits: limits, metrics: newCallMetrics()}
	t.guarded.Max = maxPolicies
	t.proxied = t.pool()
	t.proxied.Proxy = http.ProxyFromEnvironment
	t.proxied.DialContext = (&net.Dialer{Timeout: limits.Connect, KeepAlive: keepAlive}).DialContext
	return t
}

// pool returns a transport without a proxy whose dialer is not guarded yet.
func (t *Transport) pool() *http.Transport {
	return &http.Transport{
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: t.limits.Silence, PingTimeout: t.limits.Ping},
		TLSHandshakeTimeout:   t.limits.Connect,
		ResponseHeaderTimeout: t.limits.Headers,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   16,
		IdleConnTimeout:       90 * time.Second,
	}
}

func (t *Transport) call(base http.RoundTripper, req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), t.limits.Total)
	defer cancel()
	resp, err := base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return nil, unanswered(req, err)
	}
	body, err := t.read(ctx, resp)
	if err != nil {
		return nil, unanswered(req, err)
	}
	// The answer is complete here, so a caller can neither leak a connection nor reach the time
	// limit later.
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength = int64(len(body))
	switch {
	case resp.StatusCode < http.StatusMultipleChoices:
		if err := expected(req, resp, body); err != nil {
			return nil, err
		}
		return resp, nil
	case resp.StatusCode < http.StatusBadRequest:
		return resp, nil
	case resp.StatusCode == http.StatusNotFound: // a router that has just started answers 404 to every request
		if err := expected(req, resp, body); err != nil {
			return nil, err
		}
	}
	return nil, refused(req, resp, body)
}

func (t *Transport) read(ctx context.Context, resp *http.Response) ([]byte, error) {
	defer func() { _ = resp.Body.Close() }() // an error of Close cannot change what was read
	body, err := io.ReadAll(io.LimitReader(io.TeeReader(resp.Body, answerOf(ctx)), t.limits.Answer+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > t.limits.Answer {
		return nil, fmt.Errorf("%w than %d bytes", ErrTooLarge, t.limits.Answer)
	}
	return body, nil
}

// StatusError is an answer with a status of 400 or more. It unwraps to the *fault.Error that
// classifies it. A caller for which a 404, 409 or 422 has a meaning reads Code first.
type StatusError struct {
	Code   int
	Header http.Header
	// Message is the service's own message, empty if it sent none.
	Message string
	fault   *fault.Error
}

// Error returns the fault's message.
func (e *StatusError) Error() string { return e.fault.Error() }

// Unwrap returns the fault.
func (e *StatusError) Unwrap() error { return e.fault }

// StatusCode returns the status of the answer that err wraps, 0 if there is none.
func StatusCode(err error) int {
	var answer *StatusError
	if !errors.As(err, &answer) {
		return 0
	}
	return answer.Code
}

func refused(req *http.Request, resp *http.Response, body []byte) error {
	f := fault.FromHTTP(resp, body, nil)
	if f == nil {
		f = fault.Transientf(reasonUnexpectedAnswer, "unexpected answer %s", resp.Status)
	}
	f.Unknown = f.Unknown || (writes(req) && resp.StatusCode >= http.StatusInternalServerError)
	var said struct {
		Message     string `json:"message"`
		Description string `json:"error_description"` // OAuth's field, in GitLab's 401
	}
	// An answer that is not JSON (a proxy's page) has no message.
	_ = json.Unmarshal(body, &said)
	return &StatusError{
		Code:    resp.StatusCode,
		Header:  resp.Header,
		Message: cmp.Or(said.Message, said.Description),
		fault:   f,
	}
}

// unanswered classifies a call without an answer. The message has no ephemeral port, so that it is
// the same each time.
func unanswered(req *http.Request, err error) error {
	if refused := addressRefused(req, err); refused != nil {
		return refused
	}
	f := fault.FromHTTP(nil, nil, &callError{host: req.URL.Host, cause: err})
	if f == nil {
		f = fault.Transientf(reasonNoAnswer, "%s did not answer", req.URL.Host)
	}
	var op *net.OpError
	dialing := errors.As(err, &op) && op.Op == "dial"
	f.Unknown = writes(req) && !dialing
	return f
}

func writes(req *http.Request) bool { return Call{Method: req.Method}.Writes() }

type callError struct {
	host  string
	cause error
}

func (e *callError) Unwrap() error { return e.cause }

func (e *callError) Error() string {
	var op *net.OpError
	switch {
	case errors.Is(e.cause, context.Canceled):
		return "calling " + e.host + " was interrupted"
	case errors.Is(e.cause, context.DeadlineExceeded):
		return e.host + " did not answer in time"
	case errors.As(e.cause, &op):
		return fmt.Sprintf("calling %s: %s: %v", e.host, op.Op, op.Err)
	}
	return fmt.Sprintf("calling %s: %v", e.host, e.cause)
}
