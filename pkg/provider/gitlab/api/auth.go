// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	gl "github.com/xanzy/go-gitlab"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// Login is what calls are authenticated with.
type Login struct {
	Token string
	From  string // where the token is stored
	// Pace is that of the token's user.
	Pace *provider.Pace
	// Observe receives the outcome of each call.
	Observe func(provider.CallResult)
}

// New returns a client that calls the API at an address through base. The library must neither wait
// nor repeat: go-gitlab sleeps in the worker until a limit ends, and repeats POSTs (L1). An invalid
// address is an error.
func New(at *url.URL, base http.RoundTripper, l Login) (*gl.Client, error) {
	return gl.NewClient(
		"",
		gl.WithBaseURL(at.String()),
		gl.WithoutRetries(),
		gl.WithCustomLimiter(unlimited{}),
		gl.WithHTTPClient(
			&http.Client{Transport: &authenticated{Login: l, base: base, host: at.Host}, CheckRedirect: provider.CheckRedirect},
		),
	)
}

// authenticated sends calls with the token to one host, within the limits.
type authenticated struct {
	Login
	base http.RoundTripper
	host string
}

// RoundTrip implements http.RoundTripper. All kinds of tokens may be sent as Bearer
// (https://docs.gitlab.com/api/rest/authentication/). A refused token is never rotated with itself:
// GitLab treats the reuse of a rotated token as theft and revokes its successor too (L2).
func (a *authenticated) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer func() { _ = req.Body.Close() }() // nothing reads it any more
	}
	if !strings.EqualFold(req.URL.Host, a.host) {
		return nil, fault.Operatorf(reasonForeignHost, "GitLab redirects to another host; the token is not sent there")
	}
	leave, err := a.Pace.Enter(req.Context(), provider.Call{Method: req.Method, Alone: alone(req)})
	if err != nil {
		provider.ReportUnmade(a.Observe, time.Now(), err)
		return nil, err
	}
	defer leave()
	if req.Method != http.MethodGet {
		if err := provider.Fence(req.Context()); err != nil {
			provider.ReportUnmade(a.Observe, time.Now(), err)
			return nil, err
		}
	}
	began := time.Now()
	out := req.Clone(req.Context())
	out.Header.Del("Private-Token")
	out.Header.Set("Authorization", "Bearer "+a.Token)
	resp, err := a.base.RoundTrip(out)
	if provider.StatusCode(err) == http.StatusUnauthorized {
		err = provider.CredentialsRefused(err,
			"GitLab refuses the token in "+a.From+": it expired or was revoked; put a new one there")
	}
	var header http.Header
	if resp != nil {
		header = resp.Header
	}
	if !resends(req) || provider.StatusCode(err) != http.StatusTooManyRequests {
		a.Pace.Learn(header, err)
	}
	provider.ReportCall(a.Observe, began, err)
	return resp, err
}

// alone returns a name that calls in flight must not share; "" if there is none. All statuses of a
// commit are in one pipeline. GitLab locks it (409) while it changes a status. Two first statuses
// at the same time would create two pipelines.
func alone(req *http.Request) string {
	if req.Method == http.MethodPost && strings.Contains(req.URL.Path, "/statuses/") {
		return req.URL.Path
	}
	return ""
}

// resends reports whether a call has a limit of its own, which says nothing about other calls.
func resends(req *http.Request) bool {
	return req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/resend")
}

// unlimited switches off go-gitlab's own limiter, which waits in the worker: Pace knows the limits.
type unlimited struct{}

// Wait implements go-gitlab's RateLimiter.
func (unlimited) Wait(context.Context) error { return nil }
