// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"io"
	"net/http"
	"time"
)

// maxBody is the most of a request that is read; more is answered 413.
const maxBody = 25 << 20

// Exchange is one request on its way through a route.
type Exchange struct {
	R     *http.Request
	Route string
	Body  []byte
	At    time.Time // of arrival
}

// Call carries one exchange out for a forge. All methods but EdgePage run with
// Mu held, so a call is atomic.
type Call interface {
	// Do decides what was asked: who calls, whether they may, what happens. It may panic with a
	// Refusal.
	Do() Answer
	// Finish adds the headers that every answer carries.
	Finish(Answer) Answer
	// Record appends to the write log and returns where the answered status
	// can be corrected; nil for what is no write.
	Record(status int, applied bool) *int
	// EdgePage is what the forge's edge answers when what is behind it is down.
	EdgePage(code int) Answer
}

// Handler records a route's requests, lets a fault decide, answers and logs
// writes. open makes the call of an exchange.
func (c *Core) Handler(route string, open func(Exchange) Call) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		x := Exchange{R: r, Route: route, At: c.now().UTC()}
		call := open(x)
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			call.EdgePage(http.StatusRequestEntityTooLarge).Send(w)
			return
		}
		x.Body = body
		h := &Hit{core: c, exchange: x, Call: open(x)}
		fault := h.arrive()
		if fault == nil {
			h.apply().answer.Send(w)
			return
		}
		out := fault.f.Do(h)
		h.settle(out)
		if out.drop {
			drop(w)
			return
		}
		out.answer.Send(w)
	}
}

// arrive records the request and picks the fault that gets it, if any.
func (h *Hit) arrive() *FaultHandle {
	c := h.core
	c.Mu.Lock()
	defer c.Mu.Unlock()
	h.n = len(c.requests) + 1
	r := h.exchange.R
	c.requests = append(c.requests, Request{
		N: h.n, Time: h.exchange.At, Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Route: h.exchange.Route,
	})
	fault := c.pickFault(h.exchange)
	c.Notify()
	return fault
}

// Refusal ends what Do does, from whatever it calls, with an answer.
type Refusal struct{ answer Answer }

// Refuse is for panic.
func Refuse(a Answer) Refusal { return Refusal{a} }

func (h *Hit) do() (a Answer) {
	defer func() {
		switch ended := recover().(type) {
		case nil:
		case Refusal:
			a = ended.answer
		default:
			panic(ended)
		}
	}()
	return h.Call.Do()
}

// apply carries the request out and logs it if it is a write.
func (h *Hit) apply() Outcome {
	c := h.core
	c.Mu.Lock()
	defer c.Mu.Unlock()
	a := h.Call.Finish(h.do())
	status := h.Call.Record(a.Status, a.Status < 300)
	c.requests[h.n-1].Status = a.Status
	c.Notify()
	return Outcome{answer: a, applied: true, status: status}
}

// settle corrects the log after a fault: what the client was told, and a
// write that never reached the route.
func (h *Hit) settle(out Outcome) {
	c := h.core
	c.Mu.Lock()
	defer c.Mu.Unlock()
	status := out.answer.Status
	if out.drop {
		status = 0
	}
	c.requests[h.n-1].Status, c.requests[h.n-1].Fault = status, true
	switch {
	case !out.applied:
		h.Call.Record(status, false)
	case out.status != nil:
		*out.status = status
	}
	c.Notify()
}
