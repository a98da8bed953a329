// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/github/limits"
)

// tokens are what calls about one repository are authenticated with: those that the App mints, or
// the one that the Repository names.
type tokens interface {
	// token returns one that is valid for at least life.
	token(ctx context.Context, life time.Duration) (provider.Token, error)
	// forget drops a token that was refused. It reports whether there may be another one.
	forget(secret string) bool
	// renew replaces a token with which a call was refused. It reports whether there is another
	// token; recordHelp records that the call succeeded with it.
	renew(ctx context.Context, refused string) bool
	recordHelp()
	// remedy says what to do if GitHub accepts no token.
	remedy() string
}

// authenticated sends calls with the repository's token to one host, within the limits.
type authenticated struct {
	base   http.RoundTripper
	tokens tokens
	pace   *provider.Pace
	host   string
	// observe receives the outcome of each call.
	observe func(provider.CallResult)
	// expires receives when the token expires, zero if GitHub does not say; nil for tokens of the App.
	expires func(time.Time)
}

// RoundTrip implements http.RoundTripper. If GitHub refuses the token, it mints a new one and
// repeats the call, both once (G5). That is safe: GitHub did not carry out a call that it answered
// 401, or that the token was too old for.
func (a *authenticated) RoundTrip(req *http.Request) (*http.Response, error) {
	defer closeBody(req)
	if !strings.EqualFold(req.URL.Host, a.host) {
		return nil, fault.Operatorf(reasonForeignHost, "GitHub redirects to another host; its token is not sent there")
	}
	leave, err := a.pace.Enter(req.Context(), provider.Call{Method: req.Method, Notifies: limits.Notifies(req)})
	if err != nil {
		provider.ReportUnmade(a.observe, time.Now(), err)
		return nil, err
	}
	defer leave()
	began := time.Now()
	resp, refusedToken, err := a.send(req)
	switch {
	case provider.StatusCode(err) == http.StatusUnauthorized && a.tokens.forget(refusedToken):
		resp, _, err = a.send(req)
	case missesGrant(req, err) && a.tokens.renew(req.Context(), refusedToken):
		resp, err = a.repeat(req, err)
	}
	if provider.StatusCode(err) == http.StatusUnauthorized {
		err = provider.CredentialsRefused(err, a.tokens.remedy())
	}
	var header http.Header
	if resp != nil {
		header = resp.Header
	}
	a.pace.Learn(header, err)
	provider.ReportCall(a.observe, began, err)
	if resp != nil && a.expires != nil {
		a.expires(expiryOf(header))
	}
	return resp, err
}

func (a *authenticated) send(req *http.Request) (*http.Response, string, error) {
	token, err := a.tokens.token(req.Context(), callLife)
	if err != nil {
		return nil, "", err
	}
	if req.Method != http.MethodGet {
		if err := provider.Fence(req.Context()); err != nil {
			return nil, "", err
		}
	}
	out := req.Clone(req.Context())
	if req.GetBody != nil {
		if out.Body, err = req.GetBody(); err != nil {
			return nil, "", fault.New(fault.Transient, reasonError, err)
		}
	}
	out.Header.Set("Authorization", "Bearer "+token.Value)
	resp, err := a.base.RoundTrip(out)
	return resp, token.Value, err
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close() // nothing reads it any more
	}
}
