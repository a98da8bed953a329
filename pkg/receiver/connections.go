// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// The bounds that connections meet, as they are counted.
const (
	boundHeaders = "headers" // no whole headers within headerTimeout
	boundSource  = "source"  // maxUnverified
	boundTotal   = "total"   // maxConnections, one that had proved nothing was closed
	boundIdle    = "idle"    // maxConnections, one that waited for its next delivery was closed
	boundRefused = "refused" // maxConnections, all of them with a delivery that is being handled
	boundBytes   = "bytes"   // maxUnslottedBytes
	boundLarge   = "large"   // contendedRate
)

// connections are those of one Server. Each is in one of three states: unverified (it has sent no whole request since it was
// accepted or idle, or waits for an answer that says nothing), handled, or idle. When there is no room for one more, the
// longest unverified one of the source that has most of them gives way: strangers take room from strangers.
//
// net/http's own timeouts say nothing of how many there are, and netutil.LimitListener lets the next one wait behind those
// that send nothing.
type connections struct {
	maxTotal, maxUnverified, maxBytes int
	patience                          time.Duration
	metrics                           *Metrics

	mu      sync.Mutex
	all     map[*connection]struct{}
	large   map[*connection]struct{} // those whose large bodies arrive
	idle    *list.List               // of *connection, the longest idle one first
	sources map[netip.Prefix]*source
	bytes   int // of all connections
}

// source is a client's address: of IPv6 the first 64 bits, because whoever has one address has all of them.
type source struct {
	unverified *list.List // of *connection, the longest first
	bytes      int        // of those
}

func newConnections(metrics *Metrics) *connections {
	return &connections{
		metrics:  metrics,
		maxTotal: maxConnections, maxUnverified: maxUnverified, maxBytes: maxUnslottedBytes, patience: patience,
		all: map[*connection]struct{}{}, large: map[*connection]struct{}{}, idle: list.New(), sources: map[netip.Prefix]*source{},
	}
}

// bounded is a listener whose connections are counted.
type bounded struct {
	net.Listener
	connections *connections
}

// Accept returns the next connection that there is room for.
func (b bounded) Accept() (net.Conn, error) {
	for {
		raw, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := b.connections.admit(raw); c != nil {
			return c, nil
		}
		_ = raw.Close() // there is nobody to be told
	}
}

// admit makes room for one more connection; nil when there is none.
func (all *connections) admit(raw net.Conn) *connection {
	c := &connection{Conn: raw, all: all, source: sourceOf(raw.RemoteAddr()), gone: make(chan struct{})}
	all.mu.Lock()
	defer all.mu.Unlock()
	if from := all.sources[c.source]; from != nil && from.unverified.Len() >= all.maxUnverified {
		if longest := longestOf(from.unverified); time.Since(longest.since) >= all.patience {
			longest.cut(boundSource)
		}
	}
	if len(all.all) >= all.maxTotal {
		switch fullest, idle := all.fullest(func(s *source) int { return s.unverified.Len() }), longestOf(all.idle); {
		case fullest != nil:
			longestOf(fullest.unverified).cut(boundTotal)
		case idle != nil:
			idle.cut(boundIdle)
		default:
			all.metrics.bounded(boundRefused)
			return nil
		}
	}
	all.all[c] = struct{}{}
	all.metrics.connected(1)
	c.unverified()
	return c
}

// fullest returns the source of which there is most, nil when no source has any.
func (all *connections) fullest(of func(*source) int) *source {
	var fullest *source
	for _, s := range all.sources {
		if n := of(s); n > 0 && (fullest == nil || n > of(fullest)) {
			fullest = s
		}
	}
	return fullest
}

func longestOf(l *list.List) *connection {
	if l.Len() == 0 {
		return nil
	}
	c, _ := l.Front().Value.(*connection)
	return c
}

func sourceOf(addr net.Addr) netip.Prefix {
	full, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return netip.Prefix{}
	}
	bits, ip := 32, full.Addr().Unmap()
	if ip.Is6() {
		bits = 64
	}
	prefix, err := ip.WithZone("").Prefix(bits)
	if err != nil { // only for a length that the address does not have
		return netip.Prefix{}
	}
	return prefix
}

// changed follows net/http: it is the server's ConnState. Between two requests a connection is idle until the headers of
// the next one are there, for which it has headerTimeout.
func (all *connections) changed(conn net.Conn, state http.ConnState) {
	c, ok := conn.(*connection)
	if !ok {
		return
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	switch {
	case c.closed:
	case state == http.StateIdle:
		c.leave()
		c.list, c.place = all.idle, all.idle.PushBack(c)
	case state == http.StateActive && c.list == all.idle:
		c.unverified()
	}
}

type connectionKey struct{}

// remembered makes a connection known to its requests: it is the server's ConnContext.
func remembered(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, conn)
}

// connectionOf is nil, on which every method can be called, for a request that came through no Server.
func connectionOf(ctx context.Context) *connection {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return c
}
