// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

type usage struct {
	used   int
	window int64
}

// authenticate finds the caller. It refuses wrong credentials; a call without credentials goes on
// without a user where the route allows it.
func (c *call) authenticate() {
	value, private := c.r.Header.Get("PRIVATE-TOKEN"), true
	if value == "" {
		value = c.r.URL.Query().Get("private_token")
	}
	if value == "" {
		scheme, cred, _ := strings.Cut(c.r.Header.Get("Authorization"), " ")
		if strings.EqualFold(scheme, "Bearer") {
			value, private = strings.TrimSpace(cred), false
		}
	}
	if value == "" {
		return
	}
	t := c.g.tokens[value]
	switch {
	case t == nil, t.oauth && private:
		panic(traffic.Refuse(unauthorized()))
	case t.revoked:
		panic(traffic.Refuse(badToken("Token was revoked. You have to re-authorize from the user.")))
	case !t.expires.IsZero() && !c.g.opts.Now().Before(t.expires):
		panic(traffic.Refuse(badToken("Token is expired. You can either do re-authorization or token refresh.")))
	}
	c.token, c.user = t, t.user
}

// authorize decides whether the caller may use the route.
func (c *call) authorize() {
	if c.token != nil {
		if scopes := c.scopes(); !c.token.has(scopes) {
			panic(traffic.Refuse(insufficientScope(strings.Join(scopes, " "))))
		}
		if c.user.blocked {
			panic(traffic.Refuse(refuse(http.StatusForbidden, "403 Forbidden - Your account has been blocked.")))
		}
	}
	if c.token == nil && c.rt.need != readable && c.rt.need != seen {
		panic(traffic.Refuse(unauthorized()))
	}
	if c.rt.need == signedIn {
		return
	}
	p := c.findProject()
	if p == nil || !p.canSee(c.user) {
		panic(traffic.Refuse(notFound("Project")))
	}
	c.project = p
	c.mayUse(p)
}

func (c *call) mayUse(p *project) {
	allowed := true
	switch c.rt.need {
	case readable, reader:
		allowed = p.canRead(c.user)
	case maintainer:
		allowed = p.levelOf(c.user) >= Maintainer
	}
	if !allowed {
		panic(traffic.Refuse(forbidden()))
	}
}

// scopes are those of which the token needs one here.
func (c *call) scopes() []string {
	if c.r.Method != http.MethodGet && c.r.Method != http.MethodHead {
		return []string{ScopeAPI}
	}
	return append([]string{ScopeAPI, ScopeReadAPI}, c.rt.scopes...)
}

// findProject is the project that the path names by id or full path.
func (c *call) findProject() *project {
	id := c.r.PathValue("id")
	if n, err := strconv.ParseInt(id, 10, 64); err == nil {
		return c.g.projectByID(n)
	}
	return c.g.projects[key(id)]
}

// limitKey names the budget a call counts against.
func (c *call) limitKey() string {
	if c.user != nil {
		return c.user.username
	}
	return ""
}

// overLimit counts the call and reports whether the minute's budget was spent before it.
func (c *call) overLimit() bool {
	window := c.g.opts.Now().Unix() / 60
	u := c.g.usage[c.limitKey()]
	if u == nil || u.window != window {
		u = &usage{window: window}
		c.g.usage[c.limitKey()] = u
	}
	u.used++
	return u.used > c.g.opts.RateLimit
}

// limitHeaders says what is left of the budget.
func (c *call) limitHeaders(a answer) answer {
	now, limit, used := c.g.opts.Now().Unix(), c.g.opts.RateLimit, 0
	if u := c.g.usage[c.limitKey()]; u != nil && u.window == now/60 {
		used = u.used
	}
	name := "throttle_authenticated_api"
	if c.user == nil {
		name = "throttle_unauthenticated_api"
	}
	return a.
		OrHeader("RateLimit-Name", name).
		OrHeader("RateLimit-Limit", strconv.Itoa(limit)).
		OrHeader("RateLimit-Observed", strconv.Itoa(used)).
		OrHeader("RateLimit-Remaining", strconv.Itoa(max(limit-used, 0))).
		OrHeader("RateLimit-Reset", itoa((now/60+1)*60))
}

// throttled is the 429 that a client gets until reset.
func throttled(now, reset time.Time) answer {
	wait := max(int64(1), reset.Unix()-now.Unix())
	return answer{Status: http.StatusTooManyRequests, Raw: []byte("Retry later\n")}.
		With("Content-Type", "text/plain").
		With("RateLimit-Remaining", "0").
		With("RateLimit-Reset", itoa(reset.Unix())).
		With("RateLimit-ResetTime", reset.UTC().Format(http.TimeFormat)).
		With("Retry-After", itoa(wait))
}
