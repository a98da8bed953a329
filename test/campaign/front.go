// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
)

// front is a Service in front of the receivers: each delivery goes to the next endpoint, over its
// own connection, and is never sent twice.
type front struct {
	server *httptest.Server

	mu        sync.Mutex
	endpoints []*url.URL
	next      int
}

func newFront() *front {
	f := &front{}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(f.choose()) },
		Transport: &http.Transport{DisableKeepAlives: true},
		ErrorLog:  log.New(io.Discard, "", 0),
		// A connection that is refused or broken looks the same through the front.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	f.server = httptest.NewUnstartedServer(proxy)
	f.server.Config.ErrorLog = proxy.ErrorLog
	f.server.Start()
	return f
}

// nowhere is where a delivery goes without an endpoint: nothing listens on this port.
const nowhere = "127.0.0.1:1"

// choose returns the acts with the numbers, all if there are none.
func (f *front) choose() *url.URL {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.endpoints) == 0 {
		return &url.URL{Scheme: "http", Host: nowhere}
	}
	f.next++
	return f.endpoints[f.next%len(f.endpoints)]
}

// list adds an endpoint, unlist removes it.
func (f *front) list(endpoint string) {
	at, err := url.Parse(endpoint)
	if err != nil {
		panic(err) // it is one of ours
	}
	f.unlist(endpoint)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.endpoints = append(f.endpoints, at)
}

func (f *front) unlist(endpoint string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.endpoints = slices.DeleteFunc(slices.Clone(f.endpoints), func(u *url.URL) bool { return u.String() == endpoint })
}
