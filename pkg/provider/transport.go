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
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// The time limits of one call to a Git service (X1 of docs/errors.md), and the most of an answer
// that is read. Whoever answers later or more is treated like one that does not answer.
const (
	ConnectTimeout = 5 * time.Second
	HeaderTimeout  = 15 * time.Second
	CallTimeout    = 30 * time.Second
	MaxAnswer      = 8 << 20 // GitHub cuts its largest list, a tree, at 7 MB
	// A connection on which nothing has come for SilenceTimeout is asked for a sign of life, and
	// given up PingTimeout later: all calls share one, and without that each would wait for its own
	// time limit, for as long as the kernel sends again what nobody receives.
	SilenceTimeout = 10 * time.Second
	PingTimeout    = 5 * time.Second
)

// ErrTooLarge is in the chain of the error of a call whose answer is not read to its end.
var ErrTooLarge = errors.New("the answer is larger")

// Limits are the limits of one call; a zero field takes the constant of the same meaning.
type Limits struct {
	Connect, Headers, Total, Silence, Ping time.Duration
	// Answer is in bytes.
	Answer int64
}

// Transport is the HTTP transport of every provider; Within gives a round tripper of it. It repeats
// nothing, reads each answer whole, and turns whatever is not a 2xx or a redirect into an error
// whose class is set: a *StatusError for an answer, a *fault.Error for none.
type Transport struct {
	// Provider names the Git service in metrics.
	Provider string

	limits   Limits
	metrics  callMetrics
	resolver *net.Resolver // nil is the machine's

	proxied *http.Transport
	// guarded are the connections by the key of the policy they were made under, guarded by mu.
	mu      sync.Mutex
	guarded map[string]*http.Transport
}

// keepAlive is the time between two signs of life on an idle connection.
const keepAlive = 30 * time.Second

// NewTransport returns a Transport with its own connection pool. A proxy is taken from the
// environment.
func NewTransport(limits Limits) *Transport {
	limits = Limits{
		Connect: orDefault(limits.Connect, ConnectTimeout),
		Headers: orDefault(limits.Headers, HeaderTimeout),
		Total:   orDefault(limits.Total, CallTimeout),
		Silence: orDefault(limits.Silence, SilenceTimeout),
		Ping:    orDefault(limits.Ping, PingTimeout),
		Answer:  orDefault(limits.Answer, MaxAnswer),
	}
	t := &Transport{limits: limits, metrics: newCallMetrics(), guarded: map[string]*http.Transport{}}
	t.proxied = t.pool()
	t.proxied.Proxy = http.ProxyFromEnvironment
	t.proxied.DialContext = (&net.Dialer{Timeout: limits.Connect, KeepAlive: keepAlive}).DialContext
	return t
}

// pool returns connections that are dialled without a guard and without a proxy.
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
	// The whole answer is here, so that a caller can neither leak a connection nor meet the time
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
	case resp.StatusCode == http.StatusNotFound: // a router that has just begun answers so whatever it is asked
		if err := expected(req, resp, body); err != nil {
			return nil, err
		}
	}
	return nil, refused(req, resp, body)
}

func (t *Transport) read(ctx context.Context, resp *http.Response) ([]byte, error) {
	defer func() { _ = resp.Body.Close() }() // what closing says cannot change what was read
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
// classifies it; callers for whom a 404, 409 or 422 means something read Code first.
type StatusError struct {
	Code   int
	Header http.Header
	// Message is the service's own, without its other fields; empty if it sent none.
	Message string
	fault   *fault.Error
}

// Error returns the fault's message.
func (e *StatusError) Error() string { return e.fault.Error() }

// Unwrap returns the fault.
func (e *StatusError) Unwrap() error { return e.fault }

// StatusCode returns the status of the answer that err is about, 0 if it is about none.
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
		f = fault.Transientf("UnexpectedAnswer", "unexpected answer %s", resp.Status)
	}
	f.Unknown = f.Unknown || (writes(req) && resp.StatusCode >= http.StatusInternalServerError)
	var said struct {
		Message     string `json:"message"`
		Description string `json:"error_description"` // OAuth's, as GitLab answers 401
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

// unanswered classifies a call that got no answer. Its text names no ephemeral port, so that it is
// the same each time.
func unanswered(req *http.Request, err error) error {
	if refused := addressRefused(req, err); refused != nil {
		return refused
	}
	f := fault.FromHTTP(nil, nil, &callError{host: req.URL.Host, cause: err})
	if f == nil {
		f = fault.Transientf("NoAnswer", "%s did not answer", req.URL.Host)
	}
	var op *net.OpError
	dialing := errors.As(err, &op) && op.Op == "dial"
	f.Unknown = writes(req) && !dialing
	return f
}

func writes(req *http.Request) bool {
	return req.Method != http.MethodGet && req.Method != http.MethodHead
}

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

func orDefault[T comparable](value, def T) T {
	var zero T
	if value == zero {
		return def
	}
	return value
}
