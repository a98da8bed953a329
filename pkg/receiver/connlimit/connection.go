// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"container/list"
	"errors"
	"net"
	"net/netip"
	"time"
)

// ErrEvicted ends the reading of a body that was evicted for another one, or exceeds a limit.
var ErrEvicted = errors.New("too many deliveries at once: this one arrives the slowest")

// Connection is a connection of a Set. Its methods may be called on nil, which has no limits.
type Connection struct {
	net.Conn
	all    *Set
	source netip.Prefix
	// gone is closed when the connection, or its body, is evicted.
	gone chan struct{}

	// The fields below are guarded by all.mu. element is the connection in list: that of the
	// unverified ones of its source, that of the idle ones, or none while its delivery is handled.
	list    *list.List
	element *list.Element
	// since is when it became unverified.
	since time.Time
	// bytes is what its body takes while it has no slot.
	bytes int
	// large is when its body got a slot for large ones, and received what has arrived since then.
	large    time.Time
	received int
	// requested reports that a request with complete headers has arrived, and evicted that its body
	// must not be read any further.
	requested, evicted, closed bool
}

// unverified makes the connection an unverified one. Callers hold the lock.
func (c *Connection) unverified() {
	c.leave()
	from := c.all.sources[c.source]
	if from == nil {
		from = &source{unverified: list.New()}
		c.all.sources[c.source] = from
	}
	c.since = time.Now()
	c.list, c.element = from.unverified, from.unverified.PushBack(c)
	from.bytes += c.bytes
}

// leave takes the connection off its list. Callers hold the lock.
func (c *Connection) leave() {
	if c.list == nil {
		return
	}
	c.list.Remove(c.element)
	if from := c.all.sources[c.source]; from != nil && from.unverified == c.list {
		from.bytes -= c.bytes
		if from.unverified.Len() == 0 {
			delete(c.all.sources, c.source)
		}
	}
	c.list, c.element = nil, nil
}

// setBytes sets how many bytes the body takes. Callers hold the lock.
func (c *Connection) setBytes(bytes int) {
	c.all.bytes += bytes - c.bytes
	if from := c.all.sources[c.source]; from != nil && from.unverified == c.list {
		from.bytes += bytes - c.bytes
	}
	c.bytes = bytes
}

// forget removes the connection from the set. Callers hold the lock.
func (c *Connection) forget() {
	c.setBytes(0)
	c.leave()
	c.closed = true
	delete(c.all.all, c)
	delete(c.all.large, c)
	c.all.metrics.Connected(-1)
}

// evict closes the connection without an answer: it has not sent a complete request, or there are
// too many to answer. Callers hold the lock.
func (c *Connection) evict(bound string) {
	c.all.metrics.Bounded(bound)
	if !c.evicted {
		close(c.gone)
	}
	c.evicted = true
	c.forget()
	_ = c.Conn.Close() // nothing depends on it any more
}

// evictBody ends the reading of the body, so that it is answered 503. Callers hold the lock.
func (c *Connection) evictBody(bound string) {
	c.all.metrics.Bounded(bound)
	c.evicted = true
	close(c.gone)
	c.setBytes(0)
	_ = c.Conn.SetReadDeadline(time.Unix(1, 0)) // fails only if the connection is closed
}

// Close implements net.Conn.
func (c *Connection) Close() error {
	c.all.mu.Lock()
	if !c.closed {
		if !c.requested && time.Since(c.since) >= c.all.limits.Headers {
			c.all.metrics.Bounded(boundHeaders)
		}
		c.forget()
	}
	c.all.mu.Unlock()
	return c.Conn.Close()
}

// SetReadDeadline implements net.Conn. An evicted connection keeps the deadline that ends it.
func (c *Connection) SetReadDeadline(t time.Time) error {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.evicted {
		return nil
	}
	return c.Conn.SetReadDeadline(t)
}

// RequestStarted is called when the headers of a request are complete. It returns when the wait for
// them started.
func (c *Connection) RequestStarted() time.Time {
	if c == nil {
		return time.Now()
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.requested = true
	return c.since
}

// Reserve reserves memory for a body that takes so many bytes and has no slot. At the limit, a body
// is evicted: the largest one of the unverified connections whose source takes the most, and the
// oldest of those. If that is this one, or there is none, the error is ErrEvicted.
func (c *Connection) Reserve(bytes int) error {
	if c == nil {
		return nil
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	for c.all.bytes+bytes-c.bytes > c.all.limits.Bytes {
		most := c.all.heaviest()
		if most == nil || most == c {
			if !c.evicted {
				c.evictBody(boundBytes)
			}
			return ErrEvicted
		}
		most.evictBody(boundBytes)
	}
	if c.evicted {
		return ErrEvicted
	}
	c.setBytes(bytes)
	return nil
}

// heaviest returns the unverified connection with the largest body of the source whose bodies take
// the most, nil if there is none. Callers hold the lock.
func (all *Set) heaviest() *Connection {
	fullest := all.fullest(func(s *source) int { return s.bytes })
	if fullest == nil {
		return nil
	}
	var most *Connection
	for e := fullest.unverified.Front(); e != nil; e = e.Next() {
		if c, ok := e.Value.(*Connection); ok && c.bytes > 0 && (most == nil || c.bytes > most.bytes) {
			most = c
		}
	}
	return most
}

// LargeSlotTaken is called when the body has got a slot for large ones: its bytes count there from
// now on.
func (c *Connection) LargeSlotTaken() {
	if c == nil {
		return
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.setBytes(0)
	c.large, c.received = time.Now(), 0
	if !c.closed {
		c.all.large[c] = struct{}{}
	}
}

// Received counts bytes of a large body that have arrived.
func (c *Connection) Received(bytes int) {
	if c == nil {
		return
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.received += bytes
}

// EvictSlowest evicts the large body that arrives the slowest, if it is slower than Limits.Rate.
func (c *Connection) EvictSlowest() {
	if c == nil {
		return
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	var slowest *Connection
	least := float64(c.all.limits.Rate)
	for other := range c.all.large {
		took := time.Since(other.large)
		if rate := float64(other.received) / took.Seconds(); took >= c.all.limits.Patience && rate < least && !other.evicted {
			slowest, least = other, rate
		}
	}
	if slowest != nil {
		slowest.evictBody(boundLarge)
	}
}

// BodyComplete is called when the whole body is there: from now on the connection is not evicted.
// It reports false if it was evicted just before.
func (c *Connection) BodyComplete() bool {
	if c == nil {
		return true
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	delete(c.all.large, c)
	if c.evicted {
		return false
	}
	c.leave()
	return true
}

// SlotTaken is called when the body has got a slot: its bytes count there from now on.
func (c *Connection) SlotTaken() {
	if c == nil {
		return
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.setBytes(0)
}

// MarkUnverified is called when the delivery is not verified: the connection may be evicted again.
// Gone is closed when it is.
func (c *Connection) MarkUnverified() (gone <-chan struct{}) {
	if c == nil {
		return nil
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if !c.closed {
		c.unverified()
	}
	return c.gone
}

// Evicted reports whether the connection, or its body, was evicted.
func (c *Connection) Evicted() bool {
	if c == nil {
		return false
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return c.evicted
}
