// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// balancer is a Service as a client outside sees it: it gives each new connection to the next
// endpoint it knows of, and keeps it there. Bytes take latency each way.
type balancer struct {
	listener  net.Listener
	latency   time.Duration
	unlisting time.Duration
	ends      context.Context

	mu        sync.Mutex
	endpoints []string
	next      int
}

func newBalancer(ctx context.Context, latency, unlisting time.Duration) (*balancer, error) {
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &balancer{listener: listener, latency: latency, unlisting: unlisting, ends: ctx}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	go b.accept()
	return b, nil
}

func (b *balancer) url() string { return "http://" + b.listener.Addr().String() }

// list adds an endpoint at once: the first kube-proxy learns of it before all others.
func (b *balancer) list(endpoint string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Contains(b.endpoints, endpoint) {
		b.endpoints = append(b.endpoints, endpoint)
	}
}

// unlist removes an endpoint when the last kube-proxy learns of it. Open connections stay.
func (b *balancer) unlist(endpoint string) {
	time.AfterFunc(b.unlisting, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.endpoints = slices.DeleteFunc(b.endpoints, func(e string) bool { return e == endpoint })
	})
}

func (b *balancer) choose() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.endpoints) == 0 {
		return ""
	}
	b.next++
	return b.endpoints[b.next%len(b.endpoints)]
}

func (b *balancer) accept() {
	for {
		conn, err := b.listener.Accept()
		if err != nil {
			return // closed with ctx
		}
		if client, ok := conn.(*net.TCPConn); ok {
			go b.relay(client)
		}
	}
}

// relay carries one connection. A connection that is refused, or broken on one side, is reset on
// the other.
func (b *balancer) relay(client *net.TCPConn) {
	stop := context.AfterFunc(b.ends, func() { reset(client) })
	defer stop()
	var dial net.Dialer
	conn, err := dial.DialContext(b.ends, "tcp", b.choose())
	if err != nil {
		reset(client)
		return
	}
	server, ok := conn.(*net.TCPConn)
	if !ok {
		reset(client)
		return
	}
	var both sync.WaitGroup
	both.Go(func() { carry(client, server, b.latency) })
	both.Go(func() { carry(server, client, b.latency) })
	both.Wait()
	_ = client.Close()
	_ = server.Close()
}

// reset closes a connection as the kernel does for a port without a listener.
func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}

// segment is what arrived at a time; its end is that of the connection.
type segment struct {
	at   time.Time
	data []byte
	end  error
}

// carry copies from one side to the other, everything delay later, the end of the stream too. When
// one side is broken both are reset.
func carry(from, to *net.TCPConn, delay time.Duration) {
	wire := make(chan segment, 1024)
	go func() {
		defer close(wire)
		for {
			buffer := make([]byte, 32<<10)
			n, err := from.Read(buffer)
			wire <- segment{at: time.Now(), data: buffer[:n], end: err}
			if err != nil {
				return
			}
		}
	}()
	for s := range wire {
		<-time.After(time.Until(s.at.Add(delay)))
		_, err := to.Write(s.data)
		switch {
		case err == nil && s.end == nil:
		case err == nil && errors.Is(s.end, io.EOF):
			_ = to.CloseWrite()
		default:
			reset(from)
			reset(to)
		}
	}
}
