// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"
)

// none counts nothing.
type none struct{}

func (none) Connected(int64) {}
func (none) Bounded(string)  {}

// from is a connection of an address.
type from struct {
	net.Conn
	address string
	closed  bool
}

func (f *from) Close() error                    { f.closed = true; return nil }
func (f *from) SetReadDeadline(time.Time) error { return nil }
func (f *from) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(f.address))
}

const total = 64

// flood returns a Set at its limit: old connections, each of another source, and three new ones of
// one proxy.
func flood() (all *Set, others, proxied []*from) {
	all = New(Limits{Total: total, Unverified: total, Bytes: 1 << 20, Patience: time.Hour}, none{})
	for n := range total - 3 {
		f := &from{address: fmt.Sprintf("[2001:db8:0:%x::1]:1000", n)}
		all.admit(f).since = time.Now().Add(-2 * time.Hour)
		others = append(others, f)
	}
	for n := range 3 {
		f := &from{address: fmt.Sprintf("192.0.2.1:%d", n+1)}
		all.admit(f)
		proxied = append(proxied, f)
	}
	return all, others, proxied
}

func closed(connections []*from) (n int) {
	for _, f := range connections {
		if f.closed {
			n++
		}
	}
	return n
}

// New connections of many sources, for example of one IPv6 network, close old connections and not
// those that a proxy with several deliveries has just opened.
func TestManySourcesDoNotCloseNewConnections(t *testing.T) {
	all, others, proxied := flood()
	for n := range total / 2 {
		all.admit(&from{address: fmt.Sprintf("[2001:db8:1:%x::1]:1000", n)})
	}
	if n, old := closed(proxied), closed(others); n != 0 || old != total/2 {
		t.Errorf("%d of the proxy's and %d of the old ones were closed, want 0 and %d", n, old, total/2)
	}
	if open, _, _ := all.Open(); open != total {
		t.Errorf("%d connections, want %d", open, total)
	}
}

// One source with many connections closes its own, however new they are.
func TestOneSourceClosesItsOwnConnections(t *testing.T) {
	all, others, proxied := flood()
	for n := range 2 * total {
		all.admit(&from{address: fmt.Sprintf("198.51.100.1:%d", n+1)})
	}
	if n, old := closed(proxied), closed(others); n != 0 || old > total/fewDivisor+1 {
		t.Errorf("%d of the proxy's and %d of the others were closed, want 0 and at most %d", n, old, total/fewDivisor+1)
	}
}
