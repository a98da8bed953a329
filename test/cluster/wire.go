// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"io"
	"net"
	"sync"
)

// Wire forwards the connections of other parts of a cluster to one part, and can be cut. All
// methods may be called from any goroutine.
type Wire struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]struct{}
}

// newWire forwards to an address, from a port of its own.
func newWire(to string) (*Wire, error) {
	listener, err := net.Listen("tcp", loopback(0))
	if err != nil {
		return nil, fmt.Errorf("starting a wire to %s: %w", to, err)
	}
	w := &Wire{listener: listener, to: to, conns: map[net.Conn]struct{}{}}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed
			}
			go w.forward(conn)
		}
	}()
	return w, nil
}

// Cut is a network partition: it closes every connection, and every new one without an answer,
// until Restore.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for conn := range w.conns {
		_ = conn.Close()
	}
}

// Restore ends a Cut.
func (w *Wire) Restore() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = false
}

func (w *Wire) port() int { return w.listener.Addr().(*net.TCPAddr).Port }

func (w *Wire) close() {
	_ = w.listener.Close()
	w.Cut()
}

// forward returns when either side has ended the connection. An unreachable target looks like one
// that closes the connection.
func (w *Wire) forward(from net.Conn) {
	defer func() { _ = from.Close() }()
	to, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	if !w.keep(from, to) {
		return
	}
	defer w.drop(from, to)
	ended := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() {
			_, _ = io.Copy(pair[1], pair[0])
			ended <- struct{}{}
		}()
	}
	<-ended
}

// keep is false while the wire is cut.
func (w *Wire) keep(conns ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		return false
	}
	for _, conn := range conns {
		w.conns[conn] = struct{}{}
	}
	return true
}

func (w *Wire) drop(conns ...net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range conns {
		delete(w.conns, conn)
	}
}
