// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// call is one request on its way through a route. Handlers run with the
// forge's lock held, so they are atomic.
type call struct {
	g    *GitHub
	r    *http.Request
	rt   route
	body []byte
	at   time.Time

	app   *app   // of the JWT or of the token's installation
	token *token // nil for a JWT and without credentials
	repo  *repo  // when the path names one

	// What the write log says beyond the request itself.
	check *checkRun
}

// serve is the handler of a route.
func (g *GitHub) serve(rt route) http.HandlerFunc {
	return g.core.Handler(rt.name, func(x traffic.Exchange) traffic.Call {
		return &call{g: g, r: x.R, rt: rt, body: x.Body, at: x.At}
	})
}

// Record logs a write.
func (c *call) Record(status int, applied bool) *int {
	if !c.mutates() {
		return nil
	}
	return &c.logWrite(status, applied).Status
}

// Do checks who calls before the route runs.
func (c *call) Do() answer {
	c.authenticate()
	if c.token != nil && c.rt.audience != gitClient && c.overLimit() {
		reset := c.g.usage[c.limitKey()].reset
		return rateLimited(reset)
	}
	c.authorize()
	return c.rt.handle(c)
}

// Finish adds the headers every answer carries.
func (c *call) Finish(a answer) answer {
	limit, used, reset := c.spent()
	return c.withExpiry(a).
		OrHeader("X-RateLimit-Limit", strconv.Itoa(limit)).
		OrHeader("X-RateLimit-Remaining", strconv.Itoa(max(limit-used, 0))).
		OrHeader("X-RateLimit-Used", strconv.Itoa(used)).
		OrHeader("X-RateLimit-Reset", strconv.FormatInt(reset.Unix(), 10)).
		OrHeader("X-RateLimit-Resource", "core").
		OrHeader("X-GitHub-Media-Type", "github.v3; format=json").
		OrHeader("X-GitHub-Request-Id", strings.ToUpper(traffic.RandomHex(8)))
}

// mutates reports whether the request belongs in the write log. Minting and
// revoking a token changes nothing that people see, nor does a redelivery.
func (c *call) mutates() bool {
	if c.rt.name == RouteToken || c.rt.name == RouteRevoke || c.rt.name == RouteAppRedeliver ||
		c.rt.name == RouteNewApp || c.rt.name == RouteConversion {
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
