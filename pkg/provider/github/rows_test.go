// SPDX-License-Identifier: Apache-2.0

package github

import (
	"net/http"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/providertest"
	"github.com/plumbline-ci/plumbline/test/forge"
)

// rows are GitHub's of docs/errors.md.
func (f *fake) rows() []providertest.Row { return f.rowsAt(forge.RouteCheckCreate, New) }

// rowsAt are the rows of a provider with the route that creates a check.
func (f *fake) rowsAt(create string, provide func(Options) provider.Provider) []providertest.Row {
	said := func(code int, header, value, body string) forge.Action {
		return forge.Answer(code, http.Header{"Content-Type": {"application/json"}, header: {value}}, body)
	}
	const (
		none                                 = "X-None"
		secondary                            = `,"documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`
		abuse                                = `,"documentation_url":"https://docs.github.com/en/rest/overview/resources-in-the-rest-api#abuse-rate-limits"}`
		checks, tree, mint                   = providertest.CreateCheck, providertest.ReadDirectory, providertest.MintToken
		transient, throttled, operator       = fault.Transient, fault.Throttled, fault.Operator
		limited, slower, refused, permission = fault.ReasonRateLimited, fault.ReasonSecondaryRateLimited,
			fault.ReasonCredentialsRefused, fault.ReasonPermissionMissing
	)
	var rows []providertest.Row
	for _, c := range []struct {
		name, when string
		op         providertest.Operation
		do         forge.Action
		class      fault.Class
		reason     string
		wait       time.Duration
	}{
		{"G1", "the limit of an hour is exhausted", checks, forge.PrimaryRateLimit(time.Now().Add(time.Hour)), throttled,
			limited, time.Hour},
		{"G1", "so is it, as 429 without a time", tree,
			said(429, "X-RateLimit-Remaining", "0", `{"message":"API rate limit exceeded"}`), throttled, limited, time.Minute},
		{"G2", "we are too fast, and hear for how long", checks, forge.SecondaryRateLimit(30 * time.Second), throttled,
			slower, 30 * time.Second},
		{"G2", "we are too fast, as 429 without a time", tree, said(429, none, "",
			`{"message":"You have exceeded a secondary rate limit"`+secondary), throttled, slower, time.Minute},
		{"G2", "we are too fast, in the words of old", checks, said(403, "Retry-After", "120",
			`{"message":"You have triggered an abuse detection mechanism"`+abuse), throttled, slower, 2 * time.Minute},
		{"G3", "we are too fast, which only the message says", checks,
			said(403, none, "", `{"message":"You have exceeded a secondary rate limit."}`), throttled, slower, time.Minute},
		{"G5", "the App's key is not accepted", mint,
			said(401, none, "", `{"message":"A JSON web token could not be decoded"}`), operator, refused, 0},
		{"G5", "our clock is wrong", mint, said(401, none, "",
			`{"message":"'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"}`),
			operator, refused, 0},
		{"G5", "a token is not accepted, nor one that is minted anew", checks, forge.Unauthorized401(), operator, refused, 0},
		{"G6", "the App lacks a permission", checks, said(403, "X-Accepted-GitHub-Permissions", "checks=write",
			`{"message":"Resource not accessible by integration"}`), operator, permission, 0},
		{"G6", "the organization wants SAML", tree, said(403, none, "", `{"message":"Resource protected by organization SAML enforcement. You must grant your OAuth token access to this organization."}`), operator, permission, 0},
		{"G6", "the organization has a list of IP addresses", tree, said(403, none, "",
			`{"message":"Although you appear to have the correct authorization credentials, the organization has an IP allow list enabled, and your IP address is not permitted to access this resource."}`), operator, permission, 0},
		{"G6", "the installation is suspended", mint,
			said(403, none, "", `{"message":"This installation has been suspended"}`), operator, permission, 0},
		{"G7", "a commit is not found although the repository is", tree, forge.NotFound404(), transient,
			fault.ReasonCommitUnknown, 0},
		{"G8", "what is written to is not found", checks, forge.NotFound404(), operator, fault.ReasonNotFound, 0},
		{"G8", "the repository has moved", checks, said(301, "Location", "/api/v3/repositories/2/check-runs",
			`{"message":"Moved Permanently"}`), operator, fault.ReasonGitMoved, 0},
		{"G8", "the installation is not found", mint, forge.NotFound404(), operator, "InstallationNotFound", 0},
		{"G9", "the repository is empty", tree, said(409, none, "", `{"message":"Git Repository is empty."}`), transient,
			"RepositoryEmpty", 0},
		{"G10", "the commit is not known yet", checks, said(422, none, "", `{"message":"No commit found for SHA: x"}`),
			transient, fault.ReasonCommitUnknown, 0},
		{"G10", "what we report is not accepted", checks,
			said(422, none, "", `{"message":"Validation Failed","errors":["Only 65535 characters are allowed"]}`), operator,
			fault.ReasonGitRejected, 0},
		{"G11", "the answer is not ready", tree, said(202, none, "", `{}`), transient, "BadAnswer", 0},
		{"G12", "it answers a page", checks, forge.ServerError502HTML(), transient, fault.ReasonGitUnavailable, 0},
		{"G12", "it fails", tree, said(500, none, "", `{"message":"Server Error"}`), transient, fault.ReasonGitUnavailable,
			0},
		{"G12", "it answers a page of somebody else", tree,
			forge.Answer(200, http.Header{"Content-Type": {"text/html"}}, "<html>Log in</html>"), transient, "BadAnswer", 0},
		{"G12", "it hangs up", tree, forge.Drop(), transient, fault.ReasonGitUnreachable, 0},
		{"G12", "it hangs up at a write", checks, forge.Drop(), transient, fault.ReasonGitUnreachable, 0},
		{"G13", "the repository is blocked", tree, said(451, none, "", `{"message":"Repository access blocked"}`), operator,
			fault.ReasonGitGone, 0},
		{"G13", "it is gone for good", checks, said(410, none, "", `{"message":"Gone"}`), operator, fault.ReasonGitGone, 0},
	} {
		route := map[providertest.Operation]string{
			checks: create, tree: forge.RouteTree, mint: forge.RouteToken,
		}[c.op]
		fail := func() { f.Inject(forge.Fault{Route: route, Do: c.do}) }
		rows = append(rows, providertest.Row{
			Name: c.name, When: c.when, Op: c.op, Fail: fail, Class: c.class, Reason: c.reason, Wait: c.wait,
		})
	}
	rows = append(rows, providertest.Unreachable(f.t,
		func(l provider.Limits) provider.Provider { return provide(Options{Limits: l}) })...)
	return append(rows, providertest.Row{Name: "G4", Never: "no call is GraphQL's"})
}
