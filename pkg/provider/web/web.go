// SPDX-License-Identifier: Apache-2.0

// Package web fetches what authors refer to by web address, without credentials, from an
// installation that stands inside somebody's network: an author chooses the address, so it decides
// what may be reached, at dial time.
package web

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
)

const (
	// MaxText is the most bytes that are read of one definition: etcd stores no object that large.
	MaxText = 1 << 20
	// maxRedirects is the most redirects that are followed; each is guarded like the first address.
	maxRedirects = 5
)

// Options tune a Client. The zero value is right for production.
type Options struct {
	// UserAgent is sent with every request; empty is "plumbline".
	UserAgent string
	// Limits are those of one fetch, redirects included; zero fields are X1 of docs/errors.md.
	// Answer is not read.
	Limits provider.Limits
	// Proxy says which proxy a request goes through; nil takes HTTP_PROXY, HTTPS_PROXY and NO_PROXY
	// of the environment.
	Proxy func(*http.Request) (*url.URL, error)
	// Resolver looks names up for direct connections; nil is the machine's.
	Resolver *net.Resolver
}

// Client fetches. It keeps no connection and no answer, so that each dial is guarded by the policy
// of its fetch.
type Client struct{ options Options }

// New returns a Client.
func New(o Options) *Client {
	o.UserAgent = cmp.Or(o.UserAgent, "plumbline")
	if o.Proxy == nil {
		o.Proxy = http.ProxyFromEnvironment
	}
	o.Limits.Connect = cmp.Or(o.Limits.Connect, provider.ConnectTimeout)
	o.Limits.Headers = cmp.Or(o.Limits.Headers, provider.HeaderTimeout)
	o.Limits.Total = cmp.Or(o.Limits.Total, provider.CallTimeout)
	return &Client{options: o}
}

// Get returns at most limit bytes of what is at an http or https address, following redirects. Only
// what the author can mend is Invalid: an address that is malformed, refused by the policy, not
// there, not public or too large. No answer, 408 and 5xx are Transient, 429 is Throttled. Messages
// name hosts and statuses; never a query, a user or the answer.
func (c *Client) Get(ctx context.Context, address string, policy egress.Policy, limit int64) ([]byte, error) {
	u, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.Limits.Total)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, malformed()
	}
	request.Header.Set("User-Agent", c.options.UserAgent)
	client := &http.Client{Transport: &guard{options: c.options, policy: policy}, CheckRedirect: checkRedirect}
	response, err := client.Do(request)
	if err != nil {
		return nil, unanswered(u.Host, err)
	}
	defer func() { _ = response.Body.Close() }() // what closing says cannot change what was read
	if err := refusal(response); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, unanswered(response.Request.URL.Host, err)
	}
	if int64(len(data)) > limit {
		return nil, fault.Invalidf("FileTooLarge", "%s sends more than %d bytes", response.Request.URL.Host, limit)
	}
	if isPage(data) {
		return nil, fault.Transientf("ReferenceUnavailable", "%s answers a web page where a definition was asked for: "+
			"is it the address of the raw file, and does it ask nobody to log in?", response.Request.URL.Host)
	}
	return data, nil
}

// isPage reports whether text is HTML or XML, whatever its Content-Type says: no definition starts
// like that. A page in the place of a definition is most often a log-in form or an outage, and says
// nothing of what the author wrote.
func isPage(data []byte) bool {
	start := bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), " \t\r\n")
	return bytes.HasPrefix(start, []byte("<")) && !bytes.HasPrefix(start, []byte("<<")) // << is YAML's merge key
}

// Show is an address for people: without user, password, query and fragment, any of which may be a
// secret.
func Show(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "an address that is not a URL"
	}
	shown := u.Scheme + "://" + u.Host + u.EscapedPath()
	if u.RawQuery != "" {
		shown += "?…"
	}
	return shown
}

func parseAddress(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return nil, malformed()
	}
	return u, nil
}

// malformed does not repeat the address: it may hold a password.
func malformed() error {
	return fault.Invalidf("BadAddress", "this is not an address that starts with http:// or https:// and names a host")
}

// checkRedirect also keeps the address, whose query may be secret, from the host that is redirected
// to.
func checkRedirect(next *http.Request, via []*http.Request) error {
	next.Header.Del("Referer")
	if len(via) > maxRedirects {
		return fault.Invalidf("TooManyRedirects", "more than %d redirects", maxRedirects)
	}
	return nil
}
