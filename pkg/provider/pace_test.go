// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

func limited(remaining string, wait time.Duration) error {
	return &StatusError{
		Code: 403, Header: http.Header{"X-Ratelimit-Remaining": {remaining}}, fault: fault.Throttledf("RateLimited", wait, "limited"),
	}
}

// enter makes a call that ends at once and returns how long it was told to wait; 0 is not at all.
func enter(t *testing.T, p *Pace, write bool) time.Duration {
	t.Helper()
	leave, err := p.Enter(t.Context(), write)
	if err == nil {
		leave()
		return 0
	}
	f := fault.Of(err)
	if f.Class != fault.Throttled || f.RetryAfter <= 0 {
		t.Fatalf("got %+v, want a Throttled fault with a time", f)
	}
	return f.RetryAfter
}

func TestPace(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := NewPace(func() time.Time { return now })
	steps := []struct {
		name  string
		after time.Duration
		learn error
		write bool
		wait  time.Duration
	}{
		{"nothing is known", 0, nil, true, 0},
		{"writes are not paced without a reason", 0, nil, true, 0},
		{"a primary limit stops reads as well", 0, limited("0", 10*time.Minute), false, 10 * time.Minute},
		{"until it ends", 10 * time.Minute, nil, false, 0},
		{"it does not pace writes", 0, nil, true, 0},
		{"a secondary limit stops writes", 0, limited("4000", time.Minute), true, time.Minute},
		{"then one a second", time.Minute, nil, true, 0},
		{"not two", 0, nil, true, time.Second},
		{"while reads go on", 0, nil, false, 0},
		{"a second later", time.Second, nil, true, 0},
		{"five minutes later two a second", 5 * time.Minute, nil, true, 0},
		{"not three", 0, nil, true, 500 * time.Millisecond},
		{"and after twenty minutes it is forgotten", 20 * time.Minute, nil, true, 0},
		{"altogether", 0, nil, true, 0},
		{"what a service makes us wait is bounded", 0, limited("0", 1000*time.Hour), false, maxBlock},
	}
	for _, s := range steps {
		now = now.Add(s.after)
		if s.learn != nil {
			p.Learn(nil, s.learn)
		}
		if got := enter(t, p, s.write); got != s.wait {
			t.Fatalf("%s: wait %s, want %s", s.name, got, s.wait)
		}
	}
}

func TestPaceStopsBeforeTheLimitIsMet(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	p := NewPace(func() time.Time { return now })
	header := func(remaining, resource string) http.Header {
		h := http.Header{}
		h.Set("X-RateLimit-Remaining", remaining)
		h.Set("X-RateLimit-Resource", resource)
		h.Set("X-RateLimit-Reset", strconv.FormatInt(now.Unix()+60, 10))
		return h
	}
	p.Learn(header("1", "core"), nil)
	p.Learn(header("0", "search"), nil)
	if got := enter(t, p, false); got != 0 {
		t.Errorf("waits %s", got)
	}
	p.Learn(header("0", "core"), nil)
	if got := enter(t, p, false); got != time.Minute {
		t.Errorf("waits %s, want a minute", got)
	}
}

// GitLab has one limit for all, and another spelling.
func TestPaceReadsGitLabsHeaders(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	p := NewPace(func() time.Time { return now })
	h := http.Header{}
	h.Set("RateLimit-Remaining", "0")
	h.Set("RateLimit-Reset", strconv.FormatInt(now.Unix()+60, 10))
	p.Learn(h, nil)
	if got := enter(t, p, false); got != time.Minute {
		t.Errorf("waits %s, want a minute", got)
	}
}

func TestPaceWritesOneByOne(t *testing.T) {
	p := NewPace(time.Now)
	p.patience = 10 * time.Millisecond
	leave, err := p.Enter(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if got := enter(t, p, true); got != turnWait {
		t.Errorf("a second write at once: wait %s, want %s", got, turnWait)
	}
	if got := enter(t, p, false); got != 0 {
		t.Errorf("a read beside a write: wait %s", got)
	}
	leave()
	if got := enter(t, p, true); got != 0 {
		t.Errorf("after the first has ended: wait %s", got)
	}
}
