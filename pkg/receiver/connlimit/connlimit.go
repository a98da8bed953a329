// SPDX-License-Identifier: Apache-2.0

// Package connlimit limits the connections of a server, and the memory that arriving bodies take.
// It decides which connection is closed when a limit is reached.
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

// The limits for which connections are closed, as a metric counts them.
const (
	boundHeaders = "headers" // no complete headers within Limits.Headers
	boundSource  = "source"  // Limits.Unverified
	boundTotal   = "total"   // Limits.Total: an unverified connection was closed
	boundIdle    = "idle"    // Limits.Total: an idle connection was closed
	boundRefused = "refused" // Limits.Total: all connections have a request in flight
	boundBytes   = "bytes"   // Limits.Bytes
	boundLarge   = "large"   // Limits.Rate
)

// fewDivisor divides Limits.Unverified: a source with at most that many unverified connections has
// few. A proxy has fewer at once, each for some milliseconds.
const fewDivisor = 8

// Limits are the limits of a Set.
type Limits struct {
	// Total is how many connections there may be, and Unverified how many unverified ones of one
	// source address.
	Total, Unverified int
	// Bytes is what the bodies without a slot may take together.
	Bytes int
	// Patience is how long a connection is not closed for being slow, as far as the other limits
	// allow.
	Patience time.Duration
	// Headers is how long the server waits for headers.
	Headers time.Duration
	// Rate is at how many bytes a second a large body must have arrived to keep its slot while
	// another one waits.
	Rate int
}

// Metrics count connections.
type Metrics interface {
	// Connected counts accepted connections, or closed ones if n is negative.
	Connected(n int64)
	// Bounded counts a connection or request that was ended for a limit: headers, source, total,
	// idle, refused, bytes or large.
	Bounded(bound string)
}

// Set is the connections of one server. Each is in one of three states:
//   - unverified: it has sent no complete request since it was accepted or idle, or it waits for
//     the delayed answer to an unverified delivery;
//   - handled: its delivery is being handled;
//   - idle: it waits for its next request.
//
// At the limit, the oldest unverified connection of the address with the most of them is closed
// (but see oldestUnverified). So unverified senders take connections from each other only.
//
// The timeouts of net/http do not limit how many connections there are. netutil.LimitListener makes
// the next connection wait behind those that send nothing.
type Set struct {
	limits  Limits
	metrics Metrics

	mu      sync.Mutex
	all     map[*Connection]struct{}
	large   map[*Connection]struct{} // those with an arriving large body
	idle    *list.List               // of *Connection, the oldest first
	sources map[netip.Prefix]*source
	bytes   int // of all connections
}

// source is the connections of one client address. For IPv6 it is the first 64 bits: a client that
// has one of those addresses has all of them.
type source struct {
	unverified *list.List // of *Connection, the oldest first
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

// Open returns how many connections there are, how many of them send a large body, and how many
// bytes the bodies without a slot take.
func (all *Set) Open() (connections, large, bytes int) {
	all.mu.Lock()
	defer all.mu.Unlock()
	return len(all.all), len(all.large), all.bytes
}

// Listen returns a listener whose connections are those of the set.
func (all *Set) Listen(listener net.Listener) net.Listener { return bounded{listener, all} }

// bounded is a listener whose connections are limited.
type bounded struct {
	net.Listener
	set *Set
}

// Accept returns the next connection that the limits admit.
func (b bounded) Accept() (net.Conn, error) {
	for {
		raw, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := b.set.admit(raw); c != nil {
			return c, nil
		}
		_ = raw.Close() // an error would concern a connection that was not used
	}
}

// admit adds a connection, and closes another one if necessary. It returns nil if it can close
// none.
func (all *Set) admit(raw net.Conn) *Connection {
	c := &Connection{Conn: raw, all: all, source: sourceOf(raw.RemoteAddr()), gone: make(chan struct{})}
	all.mu.Lock()
	defer all.mu.Unlock()
	if from := all.sources[c.source]; from != nil && from.unverified.Len() >= all.limits.Unverified {
		if oldest := oldestOf(from.unverified); time.Since(oldest.since) >= all.limits.Patience {
			oldest.evict(boundSource)
		}
	}
	if len(all.all) >= all.limits.Total {
		switch unverified, idle := all.oldestUnverified(), oldestOf(all.idle); {
		case unverified != nil:
			unverified.evict(boundTotal)
		case idle != nil:
			idle.evict(boundIdle)
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

// oldestUnverified returns the unverified connection that is closed first, nil if there is none:
// the oldest of the source with the most of them. If every source has few, a connection older than
// Limits.Patience is preferred. So a sender with many IPv6 addresses, with a connection each, does
// not close what a proxy has just started.
func (all *Set) oldestUnverified() *Connection {
	fullest := all.fullest(func(s *source) int { return s.unverified.Len() })
	if fullest == nil {
		return nil
	}
	if fullest.unverified.Len() <= all.limits.Unverified/fewDivisor {
		old := all.fullest(func(s *source) int {
			if time.Since(oldestOf(s.unverified).since) < all.limits.Patience {
				return 0
			}
			return s.unverified.Len()
		})
		if old != nil {
			fullest = old
		}
	}
	return oldestOf(fullest.unverified)
}

// fullest returns the source for which count is highest, nil if it is 0 for all.
func (all *Set) fullest(count func(*source) int) *source {
	var fullest *source
	for _, s := range all.sources {
		if n := count(s); n > 0 && (fullest == nil || n > count(fullest)) {
			fullest = s
		}
	}
	return fullest
}

func oldestOf(l *list.List) *Connection {
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
	if err != nil { // only for a length that the address cannot have
		return netip.Prefix{}
	}
	return prefix
}

// ConnState is the server's ConnState hook. Between two requests a connection is idle until the
// headers of the next one have arrived. They may take Limits.Headers.
func (all *Set) ConnState(conn net.Conn, state http.ConnState) {
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
		c.list, c.element = all.idle, all.idle.PushBack(c)
	case state == http.StateActive && c.list == all.idle:
		c.unverified()
	}
}

type connectionKey struct{}

// ConnContext is the server's ConnContext hook: it makes a connection known to its requests.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, conn)
}

// Of returns the connection of a request. It is nil for a request that came through no Set; all
// methods may be called on nil.
func Of(ctx context.Context) *Connection {
	c, _ := ctx.Value(connectionKey{}).(*Connection)
	return c
}
