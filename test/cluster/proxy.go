// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Proxy is a server on loopback in front of the API server. It forwards calls with the client's
// own Authorization header, logs them, and lets Rules act on them. All methods may be called from
// any goroutine.
type Proxy struct {
	// URL is the plain HTTP address, for a rest.Config made in Go. SecureURL is
	// the same proxy over TLS: client-go sends no credentials of a kubeconfig
	// file over plain HTTP. Neither has a slash at its end.
	URL, SecureURL string

	target *httputil.ReverseProxy
	server *http.Server
	ca     []byte          // of SecureURL, PEM
	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	mu     sync.Mutex
	rules  []*Armed
	calls  []Call
	epoch  int // grows with Reset, so that late answers do not touch the new log
	onCall func(Call)
	cut    bool
	conns  map[net.Conn]struct{}
}

// NewProxy starts a proxy in front of the cluster's API server. Close ends it.
func NewProxy(c *Cluster) (*Proxy, error) {
	return NewProxyTo(&rest.Config{Host: c.server(), TLSClientConfig: rest.TLSClientConfig{CAData: c.creds.ca}})
}

// NewProxyTo starts a proxy in front of any server: its address and what is
// needed to trust it come from the configuration, credentials do not.
func NewProxyTo(config *rest.Config) (*Proxy, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("starting a proxy: %w", err)
	}
	trust, err := rest.TLSConfigFor(rest.AnonymousClientConfig(config))
	if err != nil {
		return nil, fmt.Errorf("starting a proxy: %w", err)
	}
	p := &Proxy{conns: map[net.Conn]struct{}{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	quiet := log.New(io.Discard, "", 0)
	p.target = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		// HTTP/1.1 and of its own: the API server ends a whole HTTP/2 connection after a 401, and
		// client-go's transports share theirs, so that calls of one test's clients were lost to
		// another's.
		Transport:     &http.Transport{TLSClientConfig: trust, MaxIdleConnsPerHost: 100, IdleConnTimeout: 30 * time.Second},
		FlushInterval: -1, // watches
		ErrorLog:      quiet,
		// An API server that is down looks the same through the proxy.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.server = &http.Server{Handler: p, ErrorLog: quiet, ConnState: p.track}
	if err := p.listen(); err != nil {
		p.Close()
		return nil, fmt.Errorf("starting a proxy: %w", err)
	}
	return p, nil
}

// listen serves plain HTTP and TLS. Both are HTTP/1.1, so that closing a
// connection loses one call and not its neighbours.
func (p *Proxy) listen() error {
	ca, key, err := SelfSigned("plumbline-test-cluster", time.Now().AddDate(1, 0, 0))
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(ca, key)
	if err != nil {
		return err
	}
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	secure, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, plain.Close())
	}
	p.ca = ca
	p.URL, p.SecureURL = "http://"+plain.Addr().String(), "https://"+secure.Addr().String()
	config := &tls.Config{
		Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12,
	}
	go func() { _ = p.server.Serve(plain) }()
	go func() { _ = p.server.Serve(tls.NewListener(secure, config)) }()
	return nil
}

// Close ends the proxy and every connection through it.
func (p *Proxy) Close() {
	p.cancel()
	_ = p.server.Close()
}

// Kubeconfig writes a kubeconfig whose client goes through the proxy with a
// bearer token, as Cluster.Token returns one.
func (p *Proxy) Kubeconfig(path, token string) error {
	return WriteKubeconfig(path, p.SecureURL, p.ca, token)
}

// Add arms a rule. Its counting begins now.
func (p *Proxy) Add(rule Rule) *Armed {
	armed := &Armed{rule: rule}
	armed.remove = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.rules = slices.DeleteFunc(slices.Clone(p.rules), func(other *Armed) bool { return other == armed })
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// A new slice: calls in flight go through the one they began with.
	p.rules = append(slices.Clone(p.rules), armed)
	return armed
}

// OnCall sets a function that gets every call before rules act on it and before it is forwarded;
// nil removes it. It may block, and it may get several calls at the same time. Tests use it to
// kill a process at the k-th call.
func (p *Proxy) OnCall(f func(Call)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onCall = f
}

// Calls is the log so far, in the order of arrival.
func (p *Proxy) Calls() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// Reset removes all rules, the log and OnCall, and ends a Cut.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules, p.calls, p.onCall, p.cut = nil, nil, nil, false
	p.epoch++
}

// Cut is a network partition between the client and the API server: it closes every connection,
// and every new one without an answer, until Restore or Reset.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for conn := range p.conns {
		_ = conn.Close()
	}
}

// Restore ends a Cut.
func (p *Proxy) Restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
}

// track is the server's view of its connections.
func (p *Proxy) track(conn net.Conn, state http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch state {
	case http.StateNew:
		p.conns[conn] = struct{}{}
		if p.cut {
			_ = conn.Close()
		}
	case http.StateClosed, http.StateHijacked:
		delete(p.conns, conn)
	}
}

// ServeHTTP handles one call. It is exported for the HTTP server only.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := parseCall(r)
	if call.Verb == "create" && call.Name == "" && strings.Contains(r.Header.Get("Content-Type"), "json") {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler) // the client went away
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		call.Name = nameInBody(body)
	}
	call, rules, onCall, answered := p.arrive(call)
	recorder := &recorder{ResponseWriter: w, answered: answered}
	if onCall != nil {
		onCall(call)
	}
	e := &exchange{proxy: p, writer: recorder, request: r}
	for _, armed := range rules {
		if armed.takes(call) {
			armed.rule.Do.run(e)
			return
		}
	}
	e.forward()
}

// arrive logs a call and returns what applies to it at this moment. answered
// puts the answer's code into the log.
func (p *Proxy) arrive(call Call) (numbered Call, rules []*Armed, onCall func(Call), answered func(code int)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut {
		panic(http.ErrAbortHandler)
	}
	call.N = len(p.calls) + 1
	p.calls = append(p.calls, call)
	epoch, index := p.epoch, call.N-1
	return call, p.rules, p.onCall, func(code int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.epoch == epoch {
			p.calls[index].Status = code
		}
	}
}

// recorder records the code of an answer when it begins: a watch does not end.
type recorder struct {
	http.ResponseWriter
	answered func(code int)
}

// WriteHeader records final codes.
func (r *recorder) WriteHeader(code int) {
	if code >= http.StatusOK {
		r.answered(code)
	}
	r.ResponseWriter.WriteHeader(code)
}

// Unwrap lets the reverse proxy flush watches.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
