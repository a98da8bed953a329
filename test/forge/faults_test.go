// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFaultActions(t *testing.T) {
	for name, tc := range map[string]struct {
		do      Action
		status  int // 0: no answer
		applied bool
		header  map[string]string
	}{
		"an answer of the test's own": {
			Answer(500, http.Header{"X-Y": {"z"}}, "{}"), 500, false, map[string]string{"X-Y": "z"},
		},
		"the hourly limit": {PrimaryRateLimit(time.Unix(99, 0)), 403, false,
			map[string]string{"X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "99"}},
		"a secondary limit": {
			SecondaryRateLimit(1500 * time.Millisecond), 403, false, map[string]string{"Retry-After": "2"},
		},
		"the unicorn": {
			ServerError502HTML(), 502, false, map[string]string{"Content-Type": "text/html; charset=utf-8"},
		},
		"401": {Unauthorized401(), 401, false, nil},
		"403 names the permission": {
			Forbidden403(), 403, false, map[string]string{"X-Accepted-Github-Permissions": "checks=write"},
		},
		"404":                   {NotFound404(), 404, false, nil},
		"a dropped connection":  {Drop(), 0, false, nil},
		"applied, then 502":     {ApplyThenAnswer(502), 502, true, nil},
		"applied, then dropped": {ApplyThenDrop(), 0, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, Options{})
			tok := w.token(w.inst, nil)
			f := w.Inject(Fault{Route: RouteCheckCreate, Count: 1, Do: tc.do})
			r := w.do("POST", "/repos/org/app/check-runs", tok, map[string]any{"name": "ci", "head_sha": w.sha})
			r.check(t, tc.status, tc.header)
			log := w.Writes()
			if len(log) != 1 || log[0].Applied != tc.applied || log[0].Status != tc.status || log[0].Name != "ci" {
				t.Errorf("write log: %+v", log)
			}
			if got := len(w.ChecksFor("org/app", w.sha)) == 1; got != tc.applied {
				t.Errorf("a check run exists: %v, want %v", got, tc.applied)
			}
			if f.Hits() != 1 {
				t.Errorf("the fault was hit %d times", f.Hits())
			}
			// Spent: the next call is served.
			if r := w.do("POST", "/repos/org/app/check-runs", tok,
				map[string]any{"name": "ci", "head_sha": w.sha}); r.Status != 201 {
				t.Errorf("after the fault: %d", r.Status)
			}
		})
	}
}

// check compares an answer; status 0 wants none.
func (r reply) check(t *testing.T, status int, header map[string]string) {
	t.Helper()
	if r.Status != status || (status == 0) != (r.Err != nil) {
		t.Errorf("got %d, %v; want %d", r.Status, r.Err, status)
	}
	for k, v := range header {
		if got := r.Header.Get(k); got != v {
			t.Errorf("header %s is %q, want %q", k, got, v)
		}
	}
}

func TestFaultWindow(t *testing.T) {
	var ahead atomic.Int64
	w := newFixture(t, Options{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	tok := w.token(w.inst, nil)
	get := func() int { return w.do("GET", "/repos/org/app", tok, nil).Status }
	run := func(f Fault, n int) []int {
		h := w.Inject(f)
		defer h.Remove()
		var got []int
		for range n {
			got = append(got, get())
		}
		return got
	}
	if diff := cmp.Diff([]int{200, 500, 500, 200},
		run(Fault{Route: RouteRepo, From: 2, Count: 2, Do: Answer(500, nil, "")}, 4)); diff != "" {
		t.Errorf("the second and third call (-want +got):\n%s", diff)
	}
	h := w.Inject(Fault{For: 3 * time.Second, Do: Answer(500, nil, "")})
	first := get()
	ahead.Store(int64(4 * time.Second))
	if second := get(); first != 500 || second != 200 {
		t.Errorf("within three seconds and after: got %d and %d, want 500 and 200", first, second)
	}
	h.Remove()
	match := Fault{
		Match: func(r *http.Request) bool { return strings.Contains(r.URL.RawQuery, "x=1") }, Do: Answer(500, nil, ""),
	}
	w.Inject(match)
	if a, b := w.do("GET", "/repos/org/app?x=1", tok, nil).Status, get(); a != 500 || b != 200 {
		t.Errorf("a fault by request: got %d and %d, want 500 and 200", a, b)
	}
}

func TestHoldAndHang(t *testing.T) {
	w := newFixture(t, Options{})
	tok := w.token(w.inst, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	release := make(chan struct{})
	hold := w.Inject(Fault{Route: RouteCheckCreate, Count: 1, Do: Hold(release)})
	hang := w.Inject(Fault{Route: RouteCheckUpdate, Do: Hang(nil)})
	body := map[string]any{"name": "ci", "head_sha": w.sha}
	answered := make(chan reply, 1)
	go func() { answered <- doCtx(ctx, "POST", w.URL()+"/repos/org/app/check-runs", tok, body) }()
	must(t, hold.Wait(ctx, 1))
	if n := len(w.Writes()); n != 0 {
		t.Errorf("a held call is not applied: %d writes", n)
	}
	close(release)
	if r := <-answered; r.Status != 201 {
		t.Errorf("a released call is served: %d %v", r.Status, r.Err)
	}
	// A client that gives up is released from a hang, and nothing was done.
	gone, giveUp := context.WithCancel(ctx)
	go func() { answered <- doCtx(gone, "PATCH", w.URL()+"/repos/org/app/check-runs/1", tok, body) }()
	must(t, hang.Wait(ctx, 1))
	giveUp()
	if r := <-answered; r.Err == nil {
		t.Errorf("the hung call was answered: %d", r.Status)
	}
	must(t, w.WaitFor(ctx, func(s *State) bool { return len(s.Writes()) == 2 }))
	if last := w.Writes()[1]; last.Applied || last.Status != 0 {
		t.Errorf("the hung call in the log: %+v", last)
	}
}

func TestWaitForEndsWithItsContext(t *testing.T) {
	w := newFixture(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.WaitFor(ctx, func(*State) bool { return false }); err == nil {
		t.Error("WaitFor returned nil though the condition never held")
	}
}
