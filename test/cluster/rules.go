// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Rule says what happens to some calls instead of plain forwarding. Of several
// rules that act on a call, the one added first does.
type Rule struct {
	// Match chooses calls; nil matches every one.
	Match func(Call) bool
	// From is the first matched call, counted from 1, that the rule acts on;
	// 0 means 1. It acts on Count calls; 0 means without end.
	From, Count int
	// For, when positive, replaces Count: the rule acts on every matched call
	// from the first one it acted on until so much later.
	For time.Duration
	// Do is what happens. It must be set.
	Do Action
}

// Action is what a Rule does with a call. Make one with Hold, Delay, Answer,
// Drop, ApplyThenDrop, ApplyThenAnswer or ApplyThenEnd.
type Action struct {
	run func(e *exchange)
}

// Hold keeps the call until release is closed, then forwards it. When the
// client gives up first, the call is never forwarded.
func Hold(release <-chan struct{}) Action {
	return Action{func(e *exchange) {
		select {
		case <-release:
			e.forward()
		case <-e.request.Context().Done():
			e.drop()
		}
	}}
}

// Delay forwards the call d later, unless the client gives up first.
func Delay(d time.Duration) Action {
	return Action{func(e *exchange) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			e.forward()
		case <-e.request.Context().Done():
			e.drop()
		}
	}}
}

// Answer answers in the API server's place; the call is not forwarded. The
// Retry-After header is set when the status has details.retryAfterSeconds.
func Answer(code int, status metav1.Status) Action {
	return Action{func(e *exchange) { e.answer(code, status) }}
}

// Fault is Answer with the code that the status carries, for the statuses in faults.go.
func Fault(status metav1.Status) Action { return Answer(int(status.Code), status) }

// NotServed is K19: the answer of an API server that does not serve the kind or the version. It is
// no Status.
func NotServed() Action {
	return text(http.StatusNotFound, "text/plain; charset=utf-8", "404 page not found\n")
}

// Page is K31: the answer of a proxy in front of the API server. The call is not forwarded.
func Page(code int, html string) Action {
	return text(code, "text/html; charset=utf-8", html)
}

func text(code int, contentType, body string) Action {
	return Action{func(e *exchange) {
		e.writer.Header().Set("Content-Type", contentType)
		e.writer.WriteHeader(code)
		_, _ = io.WriteString(e.writer, body)
	}}
}

// Drop closes the connection without an answer; the call is not forwarded.
func Drop() Action { return Action{func(e *exchange) { e.drop() }} }

// ApplyThenDrop forwards the call, so that a write lands, throws the answer
// away and closes the connection.
func ApplyThenDrop() Action {
	return Action{func(e *exchange) {
		e.apply()
		e.drop()
	}}
}

// ApplyThenAnswer forwards the call, so that a write lands, and answers as Answer does.
func ApplyThenAnswer(code int, status metav1.Status) Action {
	return Action{func(e *exchange) {
		e.apply()
		e.answer(code, status)
	}}
}

// ApplyThenEnd forwards the call, so that a write lands, and then ends the client. The client has
// no answer until then, so it makes no other call.
func ApplyThenEnd(end func()) Action {
	return Action{func(e *exchange) {
		e.apply()
		end()
		<-e.request.Context().Done()
		e.drop()
	}}
}

// Armed is a rule that a proxy has.
type Armed struct {
	rule   Rule
	remove func()

	mu      sync.Mutex
	matched int
	hits    int
	first   time.Time // when it first acted
}

// Hits is how many calls the rule acted on.
func (a *Armed) Hits() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.hits
}

// Remove takes the rule out of the proxy. Calls it holds stay held.
func (a *Armed) Remove() { a.remove() }

// takes counts a call and reports whether the rule acts on it.
func (a *Armed) takes(call Call) bool {
	if a.rule.Match != nil && !a.rule.Match(call) {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.matched++
	from := max(a.rule.From, 1)
	if a.matched < from {
		return false
	}
	if a.rule.For > 0 {
		if a.first.IsZero() {
			a.first = call.Time
		}
		if call.Time.Sub(a.first) >= a.rule.For {
			return false
		}
	} else if a.rule.Count > 0 && a.matched >= from+a.rule.Count {
		return false
	}
	a.hits++
	return true
}

// exchange is one call on its way through the proxy.
type exchange struct {
	proxy   *Proxy
	writer  http.ResponseWriter
	request *http.Request
}

func (e *exchange) forward() { e.proxy.target.ServeHTTP(e.writer, e.request) }

// apply forwards the call and forgets the answer. It goes on when the client
// gives up meanwhile: the request was sent.
func (e *exchange) apply() {
	e.proxy.target.ServeHTTP(&discard{header: http.Header{}}, e.request.WithContext(e.proxy.ctx))
}

// drop closes the connection. The server of the standard library does that,
// without a log line, for this panic, and only from inside the handler.
func (e *exchange) drop() { panic(http.ErrAbortHandler) }

func (e *exchange) answer(code int, status metav1.Status) {
	header := e.writer.Header()
	header.Set("Content-Type", "application/json")
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		header.Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	e.writer.WriteHeader(code)
	// A client that went away is its own affair.
	_ = json.NewEncoder(e.writer).Encode(status)
}

// discard is a response writer without a client.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}
