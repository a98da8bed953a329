// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"container/list"
	"errors"
	"net"
	"net/netip"
	"time"
)

// ErrDisplaced ends the reading of a body whose room somebody else needed, or for which there is
// none.
var ErrDisplaced = errors.New("too many deliveries at once: this one arrives the slowest")

// Connection is one of a set. Its methods may be called on nil, where nothing is bounded.
type Connection struct {
	net.Conn
	all    *Set
	source netip.Prefix
	// gone is closed when the connection has to give way.
	gone chan struct{}

	// What follows is guarded by all.mu. list is where the connection is in place: with the
	// unverified ones of its source, with the idle ones, or, while its delivery is handled,
	// nowhere.
	list  *list.List
	place *list.Element
	// since is when it became unverified.
	since time.Time
	// bytes is what its body takes without a slot.
	bytes int
	// large is since when its body has a slot for large ones, and received what arrived since then.
	large    time.Time
	received int
	// requested reports whether a request with whole headers has come, told that the body may not
	// be read any further.
	requested, told, closed bool
}

// unverified is called with the lock.
func (c *Connection) unverified() {
	c.leave()
	from := c.all.sources[c.source]
	if from == nil {
		from = &source{unverified: list.New()}
		c.all.sources[c.source] = from
	}
	c.since = time.Now()
	c.list, c.place = from.unverified, from.unverified.PushBack(c)
	from.bytes += c.bytes
}

// leave takes the connection off its list; it is called with the lock.
func (c *Connection) leave() {
	if c.list == nil {
		return
	}
	c.list.Remove(c.place)
	if from := c.all.sources[c.source]; from != nil && from.unverified == c.list {
		from.bytes -= c.bytes
		if from.unverified.Len() == 0 {
			delete(c.all.sources, c.source)
		}
	}
	c.list, c.place = nil, nil
}

// hold changes what the body takes; it is called with the lock.
func (c *Connection) hold(bytes int) {
	c.all.bytes += bytes - c.bytes
	if from := c.all.sources[c.source]; from != nil && from.unverified == c.list {
		from.bytes += bytes - c.bytes
	}
	c.bytes = bytes
}

// forget is called with the lock.
func (c *Connection) forget() {
	c.hold(0)
	c.leave()
	c.closed = true
	delete(c.all.all, c)
	delete(c.all.large, c)
	c.all.metrics.Connected(-1)
}

// cut closes the connection, without an answer: it has not even sent a request, or there are too
// many of them to be answered. It is called with the lock.
func (c *Connection) cut(bound string) {
	c.all.metrics.Bounded(bound)
	if !c.told {
		close(c.gone)
	}
	c.told = true
	c.forget()
	_ = c.Conn.Close() // there is nobody to be told
}

// tell ends the reading of the body, so that it is answered 503. It is called with the lock.
func (c *Connection) tell(bound string) {
	c.all.metrics.Bounded(bound)
	c.told = true
	close(c.gone)
	c.hold(0)
	_ = c.Conn.SetReadDeadline(time.Unix(1, 0)) // a connection that is closed needs none
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

// SetReadDeadline implements net.Conn. A connection that was told to end keeps the deadline that
// tells it.
func (c *Connection) SetReadDeadline(t time.Time) error {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.told {
		return nil
	}
	return c.Conn.SetReadDeadline(t)
}

// Begin says that the headers of a request are there. It returns since when they were waited for.
func (c *Connection) Begin() time.Time {
	if c == nil {
		return time.Now()
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.requested = true
	return c.since
}

// Reserve makes room for a body that takes so many bytes and has no slot. Of the source whose
// bodies take the most the unverified connection with the largest one gives way, the longest of
// these; ErrDisplaced when that is this one, or there is none.
func (c *Connection) Reserve(bytes int) error {
	if c == nil {
		return nil
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	for c.all.bytes+bytes-c.bytes > c.all.limits.Bytes {
		most := c.all.heaviest()
		if most == nil || most == c {
			if !c.told {
				c.tell(boundBytes)
			}
			return ErrDisplaced
		}
		most.tell(boundBytes)
	}
	if c.told {
		return ErrDisplaced
	}
	c.hold(bytes)
	return nil
}

// heaviest is called with the lock.
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

// Enlarged says that the body has a slot for large ones, and so takes nothing without a slot any
// more.
func (c *Connection) Enlarged() {
	if c == nil {
		return
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.hold(0)
	c.large, c.received = time.Now(), 0
	if !c.closed {
		c.all.large[c] = struct{}{}
	}
}

// Arrived counts bytes of a large body.
func (c *Connection) Arrived(bytes int) {
	if c == nil {
		return
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.received += bytes
}

// Displace ends the large body that arrives the slowest, if it is slower than Limits.Rate.
func (c *Connection) Displace() {
	if c == nil {
		return
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	var slowest *Connection
	least := float64(c.all.limits.Rate)
	for other := range c.all.large {
		took := time.Since(other.large)
		if rate := float64(other.received) / took.Seconds(); took >= c.all.limits.Patience && rate < least && !other.told {
			slowest, least = other, rate
		}
	}
	if slowest != nil {
		slowest.tell(boundLarge)
	}
}

// Handled says that the whole body is there: the connection is not closed for another one's sake
// any more. It is false when it was, just before.
func (c *Connection) Handled() bool {
	if c == nil {
		return true
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	delete(c.all.large, c)
	if c.told {
		return false
	}
	c.leave()
	return true
}

// Slotted says that the body has a slot, which counts what it takes.
func (c *Connection) Slotted() {
	if c == nil {
		return
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.hold(0)
}

// Distrusted says that the request was one that nobody vouches for. It is closed when the
// connection has to give way.
func (c *Connection) Distrusted() (gone <-chan struct{}) {
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

// Displaced reports whether the connection had to give way.
func (c *Connection) Displaced() bool {
	if c == nil {
		return false
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return c.told
}
