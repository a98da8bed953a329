// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/provider/egress"
)

func direct(*http.Request) (*url.URL, error) { return nil, nil }

// loopback lets tests reach the servers they start.
func loopback() egress.Policy { return egress.Policy{Allowed: egress.Hosts{"127.0.0.0/8"}} }

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

func text(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) }
}

func TestGet(t *testing.T) {
	var agent, credentials atomic.Value
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		agent.Store(r.UserAgent())
		credentials.Store(r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusAccepted) // any 2xx
		_, _ = io.WriteString(w, "at "+r.URL.String())
	})
	got, err := New(Options{Proxy: direct, UserAgent: "plumbline/x"}).Get(t.Context(), s.URL+"/a?b=c#d", loopback(), 100)
	if err != nil || string(got) != "at /a?b=c" || agent.Load() != "plumbline/x" || credentials.Load() != "" {
		t.Errorf("%q, %v, agent %q, credentials %q", got, err, agent.Load(), credentials.Load())
	}
}

func TestGetClassifiesAnswers(t *testing.T) {
	tests := []struct {
		code   int
		header http.Header
		class  fault.Class
	}{
		{404, nil, fault.Invalid}, {410, nil, fault.Invalid}, {401, nil, fault.Invalid}, {403, nil, fault.Invalid},
		{400, nil, fault.Invalid},
		{304, nil, fault.Invalid}, {451, nil, fault.Invalid}, {409, nil, fault.Invalid}, {302, nil, fault.Invalid},
		{500, nil, fault.Transient}, {502, nil, fault.Transient}, {503, nil, fault.Transient}, {408, nil, fault.Transient},
		{429, http.Header{"Retry-After": {"7"}}, fault.Throttled}, {403, http.Header{"Retry-After": {"7"}}, fault.Throttled},
		{429, nil, fault.Throttled},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%d %v", test.code, test.header), func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				for k, v := range test.header {
					w.Header()[k] = v
				}
				w.WriteHeader(test.code)
				if test.code != 304 {
					_, _ = io.WriteString(w, `{"message":"a stranger's words"}`)
				}
			})
			_, err := New(Options{Proxy: direct}).Get(t.Context(), s.URL+"/x?token=s3cret", loopback(), 100)
			f := fault.Of(err)
			if f == nil || f.Class != test.class || strings.Contains(f.Message, "s3cret") ||
				strings.Contains(f.Message, "stranger") {
				t.Errorf("%+v, want %s without the query and the answer", f, test.class)
			}
			if test.header != nil && f.RetryAfter != 7*time.Second {
				t.Errorf("retry after %v", f.RetryAfter)
			}
		})
	}
}

func TestGetRefusesLargeAnswers(t *testing.T) {
	s := serve(t, text(strings.Repeat("x", 1001)))
	client := New(Options{Proxy: direct})
	if _, err := client.Get(t.Context(), s.URL, loopback(), 1000); !fault.Is(err, fault.Invalid) ||
		fault.Of(err).Reason != "FileTooLarge" {
		t.Errorf("%v, want FileTooLarge", err)
	}
	if got, err := client.Get(t.Context(), s.URL, loopback(), 1001); err != nil || len(got) != 1001 {
		t.Errorf("as large as allowed: %d bytes, %v", len(got), err)
	}
	endless := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat("x", 1<<16)); err != nil {
				return
			}
		}
	})
	if _, err := client.Get(t.Context(), endless.URL, loopback(), 1<<20); !fault.Is(err, fault.Invalid) {
		t.Errorf("an endless answer: %v, want Invalid", err)
	}
}

func TestGetFollowsFiveRedirects(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Referer() != "" {
			w.WriteHeader(http.StatusTeapot) // another server must not see the address that redirected
			return
		}
		var left int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &left)
		if left == 0 {
			_, _ = io.WriteString(w, "there")
			return
		}
		http.Redirect(w, r, fmt.Sprintf("/%d", left-1), http.StatusFound)
	})
	client := New(Options{Proxy: direct})
	if got, err := client.Get(t.Context(), strings.Replace(s.URL, "://", "://me:s3cret@", 1)+"/5?token=s3cret", loopback(),
		100); err != nil || string(got) != "there" {
		t.Errorf("five: %q, %v", got, err)
	}
	if _, err := client.Get(t.Context(), s.URL+"/6", loopback(), 100); fault.Of(err) == nil ||
		fault.Of(err).Reason != "TooManyRedirects" {
		t.Errorf("six: %v, want TooManyRedirects", err)
	}
}

func TestGetStopsAtTimeLimit(t *testing.T) {
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	limits := provider.Limits{Connect: time.Second, Headers: 50 * time.Millisecond, Total: 300 * time.Millisecond}
	tests := map[string]http.HandlerFunc{
		"no headers": func(http.ResponseWriter, *http.Request) { <-hang },
		"no end": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
			<-hang
		},
	}
	for name, handler := range tests {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(handler)
			s.Start()
			t.Cleanup(s.CloseClientConnections)
			_, err := New(Options{Proxy: direct, Limits: limits}).Get(t.Context(), s.URL, loopback(), 100)
			if f := fault.Of(err); f == nil || f.Class != fault.Transient ||
				!strings.Contains(f.Message, "did not answer in time") {
				t.Errorf("%+v, want a Transient fault", f)
			}
		})
	}
}

// The message must be the same each time, because it is stored in a status.
func TestGetHidesEphemeralPort(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := listener.Addr().String()
	_ = listener.Close()
	drops := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	})
	for _, address := range []string{"http://" + closed, drops.URL} {
		_, first := New(Options{Proxy: direct}).Get(t.Context(), address, loopback(), 1)
		_, second := New(Options{Proxy: direct}).Get(t.Context(), address, loopback(), 1)
		if !fault.Is(first, fault.Transient) || first.Error() != second.Error() {
			t.Errorf("%v\n%v\nwant the same Transient fault twice", first, second)
		}
	}
}

func TestShow(t *testing.T) {
	for address, want := range map[string]string{
		"https://me:s3cret@example.com/a%2Fb?token=s3cret#x": "https://example.com/a%2Fb?…",
		"https://example.com/a":                              "https://example.com/a",
		"https://me:s3cret@exa mple.com/":                    "an address that is not a URL",
	} {
		if got := Show(address); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A page in place of a definition is retried: it says nothing about the author's reference (finding
// 18).
func TestGetRefusesPages(t *testing.T) {
	for body, page := range map[string]bool{
		"<html>Log in</html>": true, "\n <!DOCTYPE html>\n<title>x": true, "\xef\xbb\xbf<?xml version='1.0'?>": true,
		"kind: Task\n": false, "{\"kind\":\"Task\"}": false, "<<: {a: b}\n": false, "# <html>\nkind: Task": false, "": false,
	} {
		got, err := New(Options{Proxy: direct}).Get(t.Context(), serve(t, text(body)).URL, loopback(), 100)
		if page && (!fault.Is(err, fault.Transient) || !strings.Contains(err.Error(), "a web page") ||
			strings.Contains(err.Error(), "Log in")) {
			t.Errorf("%q: %q, %v, want a wait that does not repeat the page", body, got, err)
		}
		if !page && (err != nil || string(got) != body) {
			t.Errorf("%q: %q, %v", body, got, err)
		}
	}
}
