// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/receiver"
	"github.com/plumbline-ci/plumbline/pkg/receiver/connlimit"
)

// patient is far longer than anything here takes: past it, something never happens.
const patient = 15 * time.Second

// front is an env behind a real listener.
type front struct {
	*env
	*served
	server *receiver.Server
}

func newFront(t *testing.T, limits *connlimit.Limits) *front {
	e := newEnv(t)
	server := receiver.NewServer(e.replica(), e.metrics)
	server.Waits, server.DrainWait = func() []string { return nil }, 0
	if limits != nil {
		server.Bound(*limits, e.metrics)
	}
	return &front{e, serve(t, server), server}
}

// dial connects and sends a text.
func (f *front) dial(text string) net.Conn {
	f.env.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	if err != nil {
		f.env.t.Fatal(err)
	}
	f.env.t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		f.env.t.Fatal(err)
	}
	return conn
}

// headers returns the headers of a delivery as text.
func headers(d delivery, more ...string) string {
	r := d.request()
	lines := []string{"POST / HTTP/1.1", "Host: receiver"}
	for name := range r.Header {
		lines = append(lines, name+": "+r.Header.Get(name))
	}
	return strings.Join(append(lines, more...), "\r\n") + "\r\n\r\n"
}

func length(n int) string { return fmt.Sprintf("Content-Length: %d", n) }

// whole returns a delivery as text.
func whole(d delivery) string {
	body := mustBody(d)
	return headers(d, length(len(body))) + string(body)
}

// answered reads one answer. Status is 0 if the connection was closed without one.
func answered(t *testing.T, conn net.Conn) (status int, text string) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(patient)); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("the connection was neither answered nor closed")
	}
	if err != nil {
		return 0, ""
	}
	defer func() { _ = response.Body.Close() }()
	body, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(body)
}

// trickle sends one byte a second until ctx ends or the connection is closed.
func trickle(ctx context.Context, conn net.Conn) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if _, err := conn.Write([]byte(" ")); err != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// slowly returns the starts of requests that never end.
func slowly() map[string]string {
	some := strings.Repeat("x", 1<<20)
	return map[string]string{
		"nothing":                  "",
		"half of the headers":      "POST / HTTP/1.1\r\nHost: receiver\r\nX-Test-Event: pu",
		"the body":                 headers(push("k"), length(1000)) + "{",
		"the body in chunks":       headers(push("k"), "Transfer-Encoding: chunked") + "1\r\n{\r\n",
		"the rest of a large body": headers(push("k"), length(2<<20)) + some + "x",
		"more chunks of a large body": headers(push("k"),
			"Transfer-Encoding: chunked") + fmt.Sprintf("%x\r\n%s\r\n1\r\nx\r\n", len(some), some),
		"a second request": whole(push("first")) + headers(push("k"), length(1000)) + "{",
	}
}

// S3: a slow sender times out, with an answer if there was a request.
func TestS3SlowSendersTimeOut(t *testing.T) {
	t.Parallel()
	f := newFront(t, nil)
	for name, text := range slowly() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := f.dial(text)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			if name != "nothing" {
				go trickle(ctx, conn)
			}
			want := http.StatusRequestTimeout
			switch name {
			case "nothing", "half of the headers":
				want = 0
			case "a second request":
				want = http.StatusAccepted
			}
			status, _ := answered(t, conn)
			if status != want {
				t.Errorf("answered %d, want %d", status, want)
			}
			// Bytes that arrive after the answer may reset the connection.
			if rest, err := io.ReadAll(conn); name == "a second request" && !bytes.Contains(rest, []byte("408")) {
				t.Errorf("then answered %q (%v), want 408", rest, err)
			}
		})
	}
	t.Cleanup(func() {
		if got := f.sum("plumbline.receiver.cut", map[string]string{"bound": "headers"}); got != 2 {
			t.Errorf("%d connections without headers are counted, want 2", got)
		}
		if got := f.counted("rejected", "TooSlow"); got != 5 {
			t.Errorf("%d slow bodies are counted, want 5", got)
		}
	})
}

// pipes is a listener in memory, so that its connections use synctest's time.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, open := <-p
	if !open {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p pipes) Close() error { close(p); return nil }

func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p <- server
	return client, nil
}

// servePipes serves on pipes until ctx ends; wait returns when the server has ended. It is for
// tests with synctest's time.
func servePipes(ctx context.Context, t *testing.T) (f *front, listener pipes, wait func()) {
	e, listener := newEnv(t), make(pipes)
	server := receiver.NewServer(e.replica(), e.metrics)
	server.Waits, server.DrainWait, server.Logger = func() []string { return nil }, 0, e.logger()
	done := make(chan error)
	go func() { done <- server.Serve(ctx, listener) }()
	return &front{e, &served{url: "http://receiver"}, server}, listener, func() { <-done }
}

// S3: connections that send one byte a second do not delay deliveries, however many there are, even
// if they have the same address, for example a proxy's.
func TestS3SlowConnectionsDoNotDelayDeliveries(t *testing.T) {
	for _, attackers := range []int{128, 2000} {
		t.Run(fmt.Sprint(attackers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				f, listener, wait := servePipes(ctx, t)
				defer func() { stop(); wait() }()
				texts := []string{slowly()["the body"], slowly()["the body in chunks"], slowly()["half of the headers"]}
				for i := range attackers {
					conn, _ := listener.dial(ctx, "", "")
					defer func() { _ = conn.Close() }()
					go func() { _, _ = io.Copy(io.Discard, conn) }()
					go func() {
						_, _ = io.WriteString(conn, texts[i%len(texts)])
						trickle(ctx, conn)
					}()
				}
				synctest.Wait()
				client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: listener.dial}}
				began := time.Now()
				for i := range 20 {
					if err := f.post(client, push(fmt.Sprint("true-", i))); err != nil {
						t.Errorf("delivery %d: %v", i, err)
					}
				}
				if took := time.Since(began); took > 0 {
					t.Errorf("with %d slow connections 20 deliveries took %v, want no time", attackers, took)
				}
			})
		})
	}
}

// post sends a delivery, which must be recorded.
func (f *front) post(client *http.Client, d delivery) error {
	request := d.request()
	to, err := http.NewRequest(http.MethodPost, f.url, request.Body)
	if err != nil {
		return err
	}
	to.Header = request.Header
	response, err := client.Do(to)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, response.Body)
	if response.StatusCode != http.StatusAccepted {
		return fmt.Errorf("answered %s", response.Status)
	}
	return nil
}
