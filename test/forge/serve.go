// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxBody is the most of a request that is read; more is answered 413.
const maxBody = 25 << 20

// call is one request on its way through a route. Handlers run with the
// forge's lock held, so they are atomic.
type call struct {
	g    *GitHub
	r    *http.Request
	rt   route
	body []byte
	at   time.Time

	app   *app   // of the JWT or of the token's installation
	token *token // nil for a JWT and for nobody
	repo  *repo  // when the path names one

	// What the write log says beyond the request itself.
	check *checkRun
}

// serve runs one request: record it, let a fault decide, answer, log a write.
func (g *GitHub) serve(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			refuse(http.StatusRequestEntityTooLarge, docs, "Payload too large").send(w)
			return
		}
		c := &call{g: g, r: r, rt: rt, body: body, at: g.now()}
		n, fault := g.arrive(c)
		if fault == nil {
			a, _ := c.apply(n)
			a.send(w)
			return
		}
		out := fault.f.Do(&hit{c: c, n: n, handle: fault})
		g.settle(c, n, out)
		if out.drop {
			drop(w)
			return
		}
		out.answer.send(w)
	}
}

// arrive records the request and picks the fault that gets it, if any.
func (g *GitHub) arrive(c *call) (int, *FaultHandle) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := len(g.requests) + 1
	g.requests = append(g.requests, Request{
		N: n, Time: c.at, Method: c.r.Method, Path: c.r.URL.Path, Query: c.r.URL.RawQuery, Route: c.rt.name,
	})
	fault := g.pickFault(c)
	g.notify()
	return n, fault
}

// apply carries the request out and logs it if it is a write.
func (c *call) apply(n int) (answer, *Write) {
	g := c.g
	g.mu.Lock()
	defer g.mu.Unlock()
	a := c.guard()
	a = c.finish(a)
	var w *Write
	if c.mutates() {
		w = c.logWrite(a.status, a.status < 300)
	}
	g.requests[n-1].Status = a.status
	g.notify()
	return a, w
}

// settle corrects the log after a fault: what the client was told, and a
// write that never reached the route.
func (g *GitHub) settle(c *call, n int, out outcome) {
	g.mu.Lock()
	defer g.mu.Unlock()
	status := out.answer.status
	if out.drop {
		status = 0
	}
	g.requests[n-1].Status, g.requests[n-1].Fault = status, true
	switch {
	case !c.mutates():
	case out.write != nil:
		out.write.Status = status
	default:
		c.logWrite(status, false)
	}
	g.notify()
}

// guard checks who calls before the route runs.
func (c *call) guard() answer {
	if a, refused := c.authenticate(); refused {
		return a
	}
	if c.token != nil && c.overLimit() {
		reset := c.g.usage[c.limitKey()].reset
		return rateLimited(reset)
	}
	if a, refused := c.authorize(); refused {
		return a
	}
	return c.rt.handle(c)
}

// finish adds the headers every answer carries.
func (c *call) finish(a answer) answer {
	limit, used, reset := c.spent()
	return a.
		orHeader("X-RateLimit-Limit", strconv.Itoa(limit)).
		orHeader("X-RateLimit-Remaining", strconv.Itoa(max(limit-used, 0))).
		orHeader("X-RateLimit-Used", strconv.Itoa(used)).
		orHeader("X-RateLimit-Reset", strconv.FormatInt(reset.Unix(), 10)).
		orHeader("X-RateLimit-Resource", "core").
		orHeader("X-GitHub-Media-Type", "github.v3; format=json").
		orHeader("X-GitHub-Request-Id", strings.ToUpper(randomHex(8)))
}

func (a answer) orHeader(key, value string) answer {
	if a.header.Get(key) != "" {
		return a
	}
	return a.with(key, value)
}

// mutates tells whether the request belongs in the write log. Minting a token
// changes nothing a test would assert on.
func (c *call) mutates() bool {
	if c.rt.name == RouteToken {
		return false
	}
	return c.r.Method != http.MethodGet && c.r.Method != http.MethodHead
}

// decode reads the body into v; an empty body leaves v alone.
func (c *call) decode(v any) error {
	if len(bytes.TrimSpace(c.body)) == 0 {
		return nil
	}
	return json.Unmarshal(c.body, v)
}

func (c *call) problemsParsing() answer {
	return refuse(http.StatusBadRequest, c.rt.doc, "Problems parsing JSON")
}

// number reads a numeric path value; zero is no such thing.
func (c *call) number(name string) int64 {
	n, err := strconv.ParseInt(c.r.PathValue(name), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// drop closes the connection without an answer.
func drop(w http.ResponseWriter) {
	if h, ok := w.(http.Hijacker); ok {
		if conn, _, err := h.Hijack(); err == nil {
			_ = conn.Close()
			return
		}
	}
	// Where the connection cannot be taken over, net/http's own way to abort.
	panic(http.ErrAbortHandler)
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails since Go 1.24
	return hex.EncodeToString(b)
}
