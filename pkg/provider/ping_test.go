// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// hole is a TCP proxy in front of a server. Its connections may go silent: they stay open without
// carrying data.
type hole struct {
	net.Listener
	server string
	mu     sync.Mutex
	silent chan struct{} // closed when the connections made until then go silent
	dials  int
}

func newHole(t *testing.T, server string) *hole {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &hole{Listener: listener, server: server, silent: make(chan struct{})}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			h.mu.Lock()
			h.dials++
			silent := h.silent
			h.mu.Unlock()
			server, err := net.Dial("tcp", h.server)
			if err != nil {
				_ = client.Close()
				continue
			}
			t.Cleanup(func() { _, _ = client.Close(), server.Close() })
			go carry(server, client, silent)
			go carry(client, server, silent)
		}
	}()
	return h
}

func carry(to io.Writer, from io.Reader, silent <-chan struct{}) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		select {
		case <-silent: // read and dropped, as on a path that drops every packet
		default:
			_, _ = to.Write(buffer[:n])
		}
	}
}

func (h *hole) goSilent() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.silent)
	h.silent = make(chan struct{})
}

func (h *hole) dialled() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dials
}

// A connection that goes silent without being closed is closed after its ping, and the next call
// opens a new one: calls do not fail one after the other on a dead connection.
func TestSilentConnectionIsClosed(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto)
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	h := newHole(t, srv.Listener.Addr().String())
	tr := NewTransport(Limits{Headers: time.Hour, Total: time.Hour, Silence: time.Second, Ping: time.Second})
	tr.direct(local()).TLSClientConfig = &tls.Config{
		RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com",
	}
	url := "https://" + h.Addr().String()
	body := func() string {
		resp, err := do(t, tr, http.MethodGet, url)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := body(); got != "HTTP/2.0" || h.dialled() != 1 {
		t.Fatalf("%s over %d connections, want HTTP/2 over one", got, h.dialled())
	}
	h.goSilent()
	ended := make(chan error, 1)
	go func() {
		req, _ := http.NewRequest(http.MethodPost, url, strings.NewReader("x"))
		resp, err := tr.Within(local()).RoundTrip(req)
		if resp != nil {
			_ = resp.Body.Close()
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		if err == nil {
			t.Fatal("a call over a silent connection was answered")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the call still waits on the silent connection")
	}
	if got := body(); got != "HTTP/2.0" || h.dialled() != 2 {
		t.Errorf("%s over %d connections, want another one", got, h.dialled())
	}
}
