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

// Login is as whom calls are made.
type Login struct {
	Token string
	From  string // where the token is kept
	// Pace is that of the token's user.
	Pace *provider.Pace
	// Observe is told how each call went.
	Observe func(provider.Answered)
}

// New returns a client that calls the API at an address through base. The library neither waits nor
// repeats: go-gitlab sleeps until the reset of a limit, in the worker, and repeats POSTs (L1). It
// is an error if the address is none.
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

// authenticated sends calls with the token, in their turn, to one host.
type authenticated struct {
	Login
	base http.RoundTripper
	host string
}

// RoundTrip implements http.RoundTripper. Bearer is what tokens of all kinds may be sent as
// (https://docs.gitlab.com/api/rest/authentication/). A refused token is never rotated with itself:
// GitLab takes the reuse of a rotated token for theft and revokes its successor as well (L2).
func (a *authenticated) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer func() { _ = req.Body.Close() }() // nothing more is read from it
	}
	if !strings.EqualFold(req.URL.Host, a.host) {
		return nil, fault.Operatorf("ForeignHost", "GitLab redirects to another host; the token is not sent there")
	}
	leave, err := a.Pace.Enter(req.Context(), provider.Call{Method: req.Method, Alone: alone(req)})
	if err != nil {
		provider.NotMade(a.Observe, time.Now(), err)
		return nil, err
	}
	defer leave()
	if req.Method != http.MethodGet {
		if err := provider.Fence(req.Context()); err != nil {
			provider.NotMade(a.Observe, time.Now(), err)
			return nil, err
		}
	}
	began := time.Now()
	out := req.Clone(req.Context())
	out.Header.Del("Private-Token")
	out.Header.Set("Authorization", "Bearer "+a.Token)
	resp, err := a.base.RoundTrip(out)
	if provider.StatusCode(err) == http.StatusUnauthorized {
		err = provider.Refused(err, "GitLab refuses the token in "+a.From+": it expired or was revoked; put a new one there")
	}
	var header http.Header
	if resp != nil {
		header = resp.Header
	}
	if !resends(req) || provider.StatusCode(err) != http.StatusTooManyRequests {
		a.Pace.Learn(header, err)
	}
	provider.Observed(a.Observe, began, err)
	return resp, err
}

// alone is what no other call may do at the same time, "" if others may. All statuses of a commit
// are in one pipeline, which GitLab locks (409) while it changes one of them; two that are its
// first at the same time make two pipelines.
func alone(req *http.Request) string {
	if req.Method == http.MethodPost && strings.Contains(req.URL.Path, "/statuses/") {
		return req.URL.Path
	}
	return ""
}

// resends tells of a call that has a limit of its own, which says nothing of the others.
func resends(req *http.Request) bool {
	return req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/resend")
}

// unlimited is go-gitlab's own limiter, which waits in the worker, switched off: Pace knows the
// limits.
type unlimited struct{}

// Wait implements go-gitlab's RateLimiter.
func (unlimited) Wait(context.Context) error { return nil }
