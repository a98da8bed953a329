// SPDX-License-Identifier: Apache-2.0

// Package web fetches the web addresses that authors refer to, without credentials. The authors
// choose the address, and the installation is inside a private network. So the package checks at
// each dial which addresses may be called.
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
	// MaxText is the maximum size of one definition in bytes: etcd stores no larger object.
	MaxText = 1 << 20
	// maxRedirects is how many redirects are followed; each is checked like the first address.
	maxRedirects = 5
)

// Options tune a Client. The zero value is right for production.
type Options struct {
	// UserAgent is sent with every request; empty is "plumbline".
	UserAgent string
	// Limits are those of one fetch, including redirects; zero fields are X1 of docs/errors.md.
	// Answer is ignored.
	Limits provider.Limits
	// Proxy returns the proxy of a request; nil uses HTTP_PROXY, HTTPS_PROXY and NO_PROXY of the
	// environment.
	Proxy func(*http.Request) (*url.URL, error)
	// Resolver resolves names for direct connections; nil means the machine's.
	Resolver *net.Resolver
}

// Client fetches. It reuses no connection and caches no answer, so that each dial is checked by the
// policy of its fetch.
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

// Get returns the content of an http or https address, at most limit bytes, following redirects. A
// fault is Invalid only if the author can fix it: an address that is malformed, refused by the
// policy, missing, not public or too large. No answer, 408 and 5xx are Transient, 429 is Throttled.
// Messages contain hosts and statuses, but never a query, a user or the answer.
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
	defer func() { _ = response.Body.Close() }() // an error of Close cannot change what was read
	if err := refusal(response); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, unanswered(response.Request.URL.Host, err)
	}
	if int64(len(data)) > limit {
		return nil, fault.Invalidf(reasonFileTooLarge, "%s sends more than %d bytes", response.Request.URL.Host, limit)
	}
	if isPage(data) {
		return nil, fault.Transientf(reasonReferenceUnavailable, "%s answers a web page instead of a definition: "+
			"use the address of the raw file, which has to be readable without a login", response.Request.URL.Host)
	}
	return data, nil
}

// isPage reports whether data is HTML or XML, whatever its Content-Type says; no definition starts
// like that. Such a page is usually a log-in form or an outage, and says nothing about the author's
// reference.
func isPage(data []byte) bool {
	start := bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), " \t\r\n")
	return bytes.HasPrefix(start, []byte("<")) && !bytes.HasPrefix(start, []byte("<<")) // << is YAML's merge key
}

// Show returns an address for people: without user, password, query and fragment, which may be
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

// malformed does not repeat the address, which may contain a password.
func malformed() error {
	return fault.Invalidf(reasonBadAddress, "this is not an address that starts with http:// or https:// and names a host")
}

// checkRedirect also removes the Referer, whose query may be secret, from the request to the next
// host.
func checkRedirect(next *http.Request, via []*http.Request) error {
	next.Header.Del("Referer")
	if len(via) > maxRedirects {
		return fault.Invalidf(reasonTooManyRedirects, "more than %d redirects", maxRedirects)
	}
	return nil
}
