// SPDX-License-Identifier: Apache-2.0

package receiver_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/receiver/connlimit"
)

// until polls until done.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(patient); !done(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: never", what)
		}
	}
}

func (f *front) cut(bound string) int64 {
	return f.sum("plumbline.receiver.cut", map[string]string{"bound": bound})
}

// At the limit of all connections, or of those of one source, the oldest unverified connection is
// closed. A delivery is answered anyway.
func TestOldestUnverifiedConnectionIsClosedFirst(t *testing.T) {
	for bound, of := range map[string][2]int{"total": {3, 100}, "source": {100, 3}} {
		t.Run(bound, func(t *testing.T) {
			f := newFront(t, &connlimit.Limits{Total: of[0], Unverified: of[1], Bytes: 1 << 20})
			first := f.dial("POST /")
			until(t, "the first connects", func() bool { open, _, _ := f.server.Open(); return open >= 1 })
			for range 2 {
				f.dial("POST /")
			}
			if status, text := answered(t, f.dial(whole(push("k")))); status != http.StatusAccepted {
				t.Errorf("a delivery is answered %d %s, want 202", status, text)
			}
			if status, _ := answered(t, first); status != 0 || f.cut(bound) == 0 {
				t.Errorf("the first is answered %d, and %d are counted; want it closed and counted", status, f.cut(bound))
			}
		})
	}
}

// Idle connections are closed only when there are no unverified ones, the oldest first.
func TestIdleConnectionsAreClosedLast(t *testing.T) {
	f := newFront(t, &connlimit.Limits{Total: 2, Unverified: 100, Bytes: 1 << 20})
	idle := f.dial(whole(push("k1")))
	if status, _ := answered(t, idle); status != http.StatusAccepted {
		t.Fatalf("answered %d", status)
	}
	slow := f.dial("POST /")
	until(t, "both connect", func() bool { open, _, _ := f.server.Open(); return open == 2 })
	second := f.dial(whole(push("k2")))
	if status, _ := answered(t, second); status != http.StatusAccepted || f.cut("total") == 0 || f.cut("idle") != 0 {
		t.Errorf("answered %d; cut: %d unverified, %d idle; want the unverified one", status, f.cut("total"), f.cut("idle"))
	}
	_ = slow.Close()
	if status, _ := answered(t, f.dial(whole(push("k3")))); status != http.StatusAccepted || f.cut("idle") != 1 {
		t.Errorf("answered %d; %d idle ones were closed, want one", status, f.cut("idle"))
	}
	if rest, err := io.ReadAll(idle); err != nil || len(rest) != 0 {
		t.Errorf("the oldest idle one: %q, %v; want it closed", rest, err)
	}
	if _, err := io.WriteString(second, whole(push("k4"))); err != nil {
		t.Fatal(err)
	}
	if status, _ := answered(t, second); status != http.StatusAccepted {
		t.Errorf("the other one is answered %d, want 202", status)
	}
}

// The bodies without a slot have a memory budget together. Past it, a body of the source that takes
// the most is answered 503.
func TestBodiesWithoutASlotAreLimited(t *testing.T) {
	f := newFront(t, &connlimit.Limits{Total: 100, Unverified: 100, Bytes: 64 << 10})
	begun := headers(push("k"), length(1<<20)) + strings.Repeat("x", 10<<10)
	first := f.dial(begun)
	until(t, "the first takes its bytes", func() bool { _, _, bytes := f.server.Open(); return bytes == 16<<10 })
	for range 2 {
		f.dial(begun)
	}
	until(t, "all take their bytes", func() bool { _, _, bytes := f.server.Open(); return bytes == 48<<10 })
	d := push("true")
	d.message.Padding = strings.Repeat("x", 30<<10)
	if status, text := answered(t, f.dial(whole(d))); status != http.StatusAccepted {
		t.Errorf("a delivery is answered %d %s, want 202", status, text)
	}
	if status, text := answered(t, first); status != http.StatusServiceUnavailable || f.cut("bytes") == 0 {
		t.Errorf("the first is answered %d %s, and %d are counted; want 503", status, text, f.cut("bytes"))
	}
	d.message.Padding = strings.Repeat("x", 100<<10)
	if status, text := answered(t, f.dial(whole(d))); status != http.StatusServiceUnavailable {
		t.Errorf("a body over the budget is answered %d %s, want 503", status, text)
	}
}

// Large bodies that arrive slowly lose their slot to one that arrives quickly.
func TestSlowLargeBodiesAreEvicted(t *testing.T) {
	f := newFront(t, nil)
	begun := headers(push("k"), length(2<<20)) + strings.Repeat("x", 1<<20+1)
	f.dial(begun)
	f.dial(begun)
	until(t, "both have a slot", func() bool { _, large, _ := f.server.Open(); return large == 2 })
	if _, _, bytes := f.server.Open(); bytes != 0 {
		t.Errorf("%d bytes with a slot are counted as bytes without one", bytes)
	}
	d := push("true")
	d.message.Padding = strings.Repeat("x", 3<<20)
	if status, text := answered(t, f.dial(whole(d))); status != http.StatusAccepted || f.cut("large") == 0 {
		t.Errorf("a large delivery is answered %d %s, and %d slow ones are counted; want 202 and one", status, text,
			f.cut("large"))
	}
}

// A verified sender keeps its connection, as proxies need it. Other connections are closed.
func TestOnlyVerifiedConnectionsStayOpen(t *testing.T) {
	f := newFront(t, nil)
	client := &http.Client{Timeout: patient}
	reused := 0
	for i := range 3 {
		request, err := http.NewRequest(http.MethodPost, f.url, strings.NewReader(string(mustBody(push("k")))))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = push(fmt.Sprint("k", i)).request().Header
		trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
			if info.Reused {
				reused++
			}
		}}
		response, err := client.Do(request.WithContext(httptrace.WithClientTrace(t.Context(), trace)))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusAccepted || response.Close {
			t.Errorf("answered %s, Connection: close %t", response.Status, response.Close)
		}
	}
	if reused != 2 {
		t.Errorf("the connection was used again %d times, want 2", reused)
	}
	for name, text := range map[string]string{
		"not signed":    strings.Replace(whole(push("k")), "X-Test-Signature: ", "X-Test-Signature: 0", 1),
		"no delivery":   "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"a probe":       "GET /live HTTP/1.1\r\nHost: x\r\n\r\n",
		"of no service": "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
	} {
		if got := readAll(t, f, text); !strings.Contains(got, "Connection: close") {
			t.Errorf("%s: answered %q, want Connection: close", name, got)
		}
	}
}

// Deliveries that are sent without waiting for the answer before are answered in their order.
func TestPipelinedDeliveries(t *testing.T) {
	f := newFront(t, nil)
	got := readAll(t, f, whole(push("k1"))+whole(push("k2"))+"GET /live HTTP/1.1\r\nHost: x\r\n\r\n")
	if n := strings.Count(got, "HTTP/1.1 202"); n != 2 || !strings.Contains(got, "HTTP/1.1 200") {
		t.Errorf("answered %q, want 202 twice and 200", got)
	}
	f.wantEvents(2)
}

// readAll sends a text and reads until the connection is closed.
func readAll(t *testing.T, f *front, text string) string {
	t.Helper()
	conn := f.dial(text)
	if err := conn.SetReadDeadline(time.Now().Add(patient)); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(conn)
	if err != nil {
		t.Errorf("%q: %v", text, err)
	}
	return string(all)
}
