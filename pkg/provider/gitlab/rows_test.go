// SPDX-License-Identifier: Apache-2.0

package gitlab

import (
	"net/http"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/providertest"
	"github.com/plumbline-ci/plumbline/test/forge"
	forgelab "github.com/plumbline-ci/plumbline/test/forge/gitlab"
)

// rows are GitLab's of docs/errors.md.
func (f *fake) rows() []providertest.Row {
	now := time.Now()
	text := func(code int, header, value, body string) forgelab.Action {
		return forge.Answer(code, http.Header{"Content-Type": {"text/plain"}, header: {value}}, body)
	}
	const (
		statuses, tree                       = providertest.CreateCheck, providertest.ReadDirectory
		transient, throttled, operator       = fault.Transient, fault.Throttled, fault.Operator
		limited, slower, refused, permission = fault.ReasonRateLimited, fault.ReasonSecondaryRateLimited,
			fault.ReasonCredentialsRefused, fault.ReasonPermissionMissing
	)
	var rows []providertest.Row
	for _, c := range []struct {
		name, when string
		op         providertest.Operation
		do         forgelab.Action
		class      fault.Class
		reason     string
		wait       time.Duration
	}{
		{"L1", "a limit is exhausted", statuses, forgelab.RateLimited(now, now.Add(time.Hour)), throttled, limited, time.Hour},
		{"L1", "a limit of the edge is exhausted", tree, text(429, "Retry-After", "60", "Retry later\n"), throttled, slower,
			time.Minute},
		{"L1", "a limit of the edge is exhausted, without a time", tree, text(429, "X-None", "", "Retry later\n"), throttled,
			slower, time.Minute},
		{"L2", "the token is not accepted", statuses, forgelab.Unauthorized401(), operator, refused, 0},
		{"L2", "the token was revoked", tree, forgelab.Revoked401(), operator, refused, 0},
		{"L3", "the token may not set a status", statuses, forgelab.Forbidden403(), operator, permission, 0},
		{"L3", "the token's scope is too small", statuses, forgelab.InsufficientScope403(), operator, permission, 0},
		{"L4", "the project is not found", statuses, forgelab.NotFound404(), operator, fault.ReasonNotFound, 0},
		{"L4", "a commit is not found although the project is", tree, forgelab.NotFound404(), transient,
			fault.ReasonCommitUnknown, 0},
		{"L5", "it is busy with the same pipeline", statuses, forgelab.Conflict409(), transient, fault.ReasonGitConflict, 0},
		{"L6", "it refuses a status, and shows another one than is wanted", statuses,
			forgelab.CannotTransition400("run", "running"), transient, fault.ReasonTransition, 0},
		{"L7", "it is read-only", statuses, forgelab.ReadOnly503(), transient, fault.ReasonGitUnavailable, 0},
		{"L7", "it fails", tree, forgelab.InternalError500(), transient, fault.ReasonGitUnavailable, 0},
		{"L7", "it answers a page", statuses, forge.ServerError502HTML(), transient, fault.ReasonGitUnavailable, 0},
		{"L7", "it answers a page of somebody else", tree,
			forge.Answer(200, http.Header{"Content-Type": {"text/html"}}, "<html>Log in</html>"), transient, "BadAnswer", 0},
		{"L7", "it hangs up", tree, forge.Drop(), transient, fault.ReasonGitUnreachable, 0},
		{"L7", "it hangs up at a write", statuses, forge.Drop(), transient, fault.ReasonGitUnreachable, 0},
	} {
		route := map[providertest.Operation]string{statuses: forgelab.RouteStatusCreate, tree: forgelab.RouteTree}[c.op]
		fail := func() { f.Inject(forgelab.Fault{Route: route, Do: c.do}) }
		rows = append(rows, providertest.Row{
			Name: c.name, When: c.when, Op: c.op, Fail: fail, Class: c.class, Reason: c.reason, Wait: c.wait,
		})
	}
	return append(rows, providertest.Unreachable(f.t,
		func(l provider.Limits) provider.Provider { return New(Options{Limits: l}) })...)
}
