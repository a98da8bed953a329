// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// call is one request on its way through a route. Handlers run with the
// forge's lock held, so they are atomic.
type call struct {
	g    *GitLab
	r    *http.Request
	rt   route
	body []byte
	at   time.Time

	token   *token
	user    *user    // nil without credentials
	project *project // when the path names one
	params  map[string]any

	// What the write log says beyond the request itself.
	status *status
	note   *note
}

// serve is the handler of a route.
func (g *GitLab) serve(rt route) http.HandlerFunc {
	return g.core.Handler(rt.name, func(x traffic.Exchange) traffic.Call {
		return &call{g: g, r: x.R, rt: rt, body: x.Body, at: x.At}
	})
}

// Do checks who calls before the route runs.
func (c *call) Do() answer {
	c.authenticate()
	if c.overLimit() {
		now := c.g.opts.Now()
		return throttled(now, time.Unix((now.Unix()/60+1)*60, 0))
	}
	params, err := c.readParams()
	if err != nil {
		return badParameter(err.Error())
	}
	c.params = params
	c.authorize()
	return c.rt.handle(c)
}

// Finish adds the headers every answer carries.
func (c *call) Finish(a answer) answer {
	return c.limitHeaders(a).
		OrHeader("X-Request-Id", strings.ToUpper(traffic.RandomHex(13))).
		OrHeader("X-Gitlab-Meta", `{"version":"1"}`)
}

// EdgePage is what GitLab's front shows when the application is down.
func (c *call) EdgePage(code int) answer {
	page := fmt.Sprintf("<!DOCTYPE html>\n<html>\n<head>\n<title>GitLab is not responding (%d)</title>\n</head>\n"+
		"<body>\n<h1>%d</h1>\n<h3>Whoops, GitLab is taking too much time to respond.</h3>\n</body>\n</html>\n", code, code)
	return answer{Status: code, Raw: []byte(page)}.With("Content-Type", "text/html; charset=utf-8")
}

// Record logs a write.
func (c *call) Record(status int, applied bool) *int {
	if c.r.Method == http.MethodGet || c.r.Method == http.MethodHead {
		return nil
	}
	return &c.logWrite(status, applied).Status
}

// readParams merges the query with a JSON object or a form in the body.
func (c *call) readParams() (map[string]any, error) {
	out := map[string]any{}
	add := func(vs url.Values) {
		for k := range vs {
			out[k] = vs.Get(k)
		}
	}
	add(c.r.URL.Query())
	if len(c.body) == 0 {
		return out, nil
	}
	if strings.HasPrefix(c.r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		form, err := url.ParseQuery(string(c.body))
		if err != nil {
			return nil, fmt.Errorf("the request body is no form")
		}
		add(form)
		return out, nil
	}
	var body map[string]any
	if err := json.Unmarshal(c.body, &body); err != nil {
		return nil, fmt.Errorf("The provided JSON payload is not valid") //nolint:staticcheck // GitLab's words
	}
	for k, v := range body {
		out[k] = v
	}
	return out, nil
}

// text is a parameter as text; numbers and truth values read as they are written.
func (c *call) text(name string) string {
	switch v := c.params[name].(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}

// yes is a parameter as a truth value.
func (c *call) yes(name string) bool {
	switch strings.ToLower(c.text(name)) {
	case "true", "1", "t", "yes", "on":
		return true
	}
	return false
}

// number reads a numeric path value; zero is no such thing.
func (c *call) number(name string) int64 {
	n, err := strconv.ParseInt(c.r.PathValue(name), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
