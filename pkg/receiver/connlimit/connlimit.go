// SPDX-License-Identifier: Apache-2.0

// Package connlimit knows the connections of a server, and which of them has to give way when there
// are too many or what they send takes too much room.
package connlimit

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
	boundHeaders = "headers" // no whole headers within Limits.Headers
	boundSource  = "source"  // Limits.Unverified
	boundTotal   = "total"   // Limits.Total, one that had proved nothing was closed
	boundIdle    = "idle"    // Limits.Total, one that waited for its next request was closed
	boundRefused = "refused" // Limits.Total, all of them with a request that is being handled
	boundBytes   = "bytes"   // Limits.Bytes
	boundLarge   = "large"   // Limits.Rate
)

// fewOf makes of Limits.Unverified how many connections a source may have and still counts as one
// that floods nobody. What a proxy has under way at once, each for some milliseconds, is less than
// that.
const fewOf = 8

// Limits are the bounds.
type Limits struct {
	// Total is how many connections there may be, and Unverified how many of one source address
	// that have proved nothing.
	Total, Unverified int
	// Bytes is what the bodies that have no slot may take together.
	Bytes int
	// Patience is for how long nobody is closed for being slow, as far as there is room.
	Patience time.Duration
	// Headers is how long the server waits for headers.
	Headers time.Duration
	// Rate is what a large body has to have arrived at, in bytes a second, to keep its slot while
	// another one waits.
	Rate int
}

// Metrics count.
type Metrics interface {
	// Connected counts connections that were accepted, or, below 0, closed.
	Connected(n int64)
	// Bounded counts a connection or request that was ended for one of the bounds: headers, source,
	// total, idle, refused, bytes or large.
	Bounded(bound string)
}

// Set is the connections of one server. Each is in one of three states: unverified (it has sent no
// whole request since it was accepted or idle, or waits for an answer that says nothing), handled,
// or idle. When there is no room for one more, the longest unverified one of the source that has
// most of them gives way: strangers take room from strangers (but see unproved).
//
// net/http's own timeouts say nothing of how many there are, and netutil.LimitListener lets the
// next one wait behind those that send nothing.
type Set struct {
	limits  Limits
	metrics Metrics

	mu      sync.Mutex
	all     map[*Connection]struct{}
	large   map[*Connection]struct{} // those whose large bodies arrive
	idle    *list.List               // of *Connection, the longest idle one first
	sources map[netip.Prefix]*source
	bytes   int // of all connections
}

// source is a client's address: of IPv6 the first 64 bits, because whoever has one address has all
// of them.
type source struct {
	unverified *list.List // of *Connection, the longest first
	bytes      int        // of those
}

// New returns an empty set.
func New(limits Limits, metrics Metrics) *Set {
	return &Set{
		limits:  limits,
		metrics: metrics,
		all:     map[*Connection]struct{}{},
		large:   map[*Connection]struct{}{},
		idle:    list.New(),
		sources: map[netip.Prefix]*source{},
	}
}

// Open returns how many connections there are, how many of them send a large body, and what bodies
// take without a slot.
func (all *Set) Open() (connections, large, bytes int) {
	all.mu.Lock()
	defer all.mu.Unlock()
	return len(all.all), len(all.large), all.bytes
}

// Listen returns a listener whose connections are those of the set.
func (all *Set) Listen(listener net.Listener) net.Listener { return bounded{listener, all} }

// bounded is a listener whose connections are counted.
type bounded struct {
	net.Listener
	set *Set
}

// Accept returns the next connection that there is room for.
func (b bounded) Accept() (net.Conn, error) {
	for {
		raw, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := b.set.admit(raw); c != nil {
			return c, nil
		}
		_ = raw.Close() // there is nobody to be told
	}
}

// admit makes room for one more connection; nil when there is none.
func (all *Set) admit(raw net.Conn) *Connection {
	c := &Connection{Conn: raw, all: all, source: sourceOf(raw.RemoteAddr()), gone: make(chan struct{})}
	all.mu.Lock()
	defer all.mu.Unlock()
	if from := all.sources[c.source]; from != nil && from.unverified.Len() >= all.limits.Unverified {
		if longest := longestOf(from.unverified); time.Since(longest.since) >= all.limits.Patience {
			longest.cut(boundSource)
		}
	}
	if len(all.all) >= all.limits.Total {
		switch unverified, idle := all.unproved(), longestOf(all.idle); {
		case unverified != nil:
			unverified.cut(boundTotal)
		case idle != nil:
			idle.cut(boundIdle)
		default:
			all.metrics.Bounded(boundRefused)
			return nil
		}
	}
	all.all[c] = struct{}{}
	all.metrics.Connected(1)
	c.unverified()
	return c
}

// unproved returns the unverified connection that gives way, nil when there is none: the longest of
// the source that has most of them. Where every source has few, it is one that has had
// Limits.Patience, if there is any: many sources with a connection each, as whoever has a network
// of IPv6 has them, do not end what a proxy has just begun.
func (all *Set) unproved() *Connection {
	fullest := all.fullest(func(s *source) int { return s.unverified.Len() })
	if fullest == nil {
		return nil
	}
	if fullest.unverified.Len() <= all.limits.Unverified/fewOf {
		patient := all.fullest(func(s *source) int {
			if time.Since(longestOf(s.unverified).since) < all.limits.Patience {
				return 0
			}
			return s.unverified.Len()
		})
		if patient != nil {
			fullest = patient
		}
	}
	return longestOf(fullest.unverified)
}

// fullest returns the source of which there is most, nil when no source has any.
func (all *Set) fullest(of func(*source) int) *source {
	var fullest *source
	for _, s := range all.sources {
		if n := of(s); n > 0 && (fullest == nil || n > of(fullest)) {
			fullest = s
		}
	}
	return fullest
}

func longestOf(l *list.List) *Connection {
	if l.Len() == 0 {
		return nil
	}
	c, _ := l.Front().Value.(*Connection)
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

// Changed follows net/http: it is the server's ConnState. Between two requests a connection is idle
// until the headers of the next one are there, for which it has Limits.Headers.
func (all *Set) Changed(conn net.Conn, state http.ConnState) {
	c, ok := conn.(*Connection)
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

// Remembered makes a connection known to its requests: it is the server's ConnContext.
func Remembered(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, conn)
}

// Of is nil, on which every method can be called, for a request that came through no set.
func Of(ctx context.Context) *Connection {
	c, _ := ctx.Value(connectionKey{}).(*Connection)
	return c
}
