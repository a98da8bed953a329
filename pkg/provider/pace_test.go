// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

func limited(remaining string, wait time.Duration) error {
	return &StatusError{
		Code: 403, Header: http.Header{"X-Ratelimit-Remaining": {remaining}},
		fault: fault.Throttledf("RateLimited", wait, "limited"),
	}
}

// enter makes a call that ends at once and returns how long it must wait; 0 is not at all.
func enter(t *testing.T, p *Pace, write bool) time.Duration {
	t.Helper()
	call := Call{Method: http.MethodGet}
	if write {
		call.Method = http.MethodPost
	}
	leave, err := p.Enter(t.Context(), call)
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
	p := NewPace(func() time.Time { return now }, Rules{})
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

func TestPaceStopsBeforeLimit(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	p := NewPace(func() time.Time { return now }, Rules{})
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

// GitLab has one limit for all calls, and other header names.
func TestPaceReadsGitLabsHeaders(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	p := NewPace(func() time.Time { return now }, Rules{})
	h := http.Header{}
	h.Set("RateLimit-Remaining", "0")
	h.Set("RateLimit-Reset", strconv.FormatInt(now.Unix()+60, 10))
	p.Learn(h, nil)
	if got := enter(t, p, false); got != time.Minute {
		t.Errorf("waits %s, want a minute", got)
	}
}

// A window ends by the service's clock, not by ours.
func TestPaceUsesClockOfService(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	p := NewPace(func() time.Time { return now.Add(-15 * time.Minute) }, Rules{})
	h := http.Header{}
	h.Set("Date", now.UTC().Format(http.TimeFormat))
	h.Set("RateLimit-Remaining", "0")
	h.Set("RateLimit-Reset", strconv.FormatInt(now.Unix()+40, 10))
	p.Learn(h, nil)
	if got := enter(t, p, false); got != 40*time.Second {
		t.Errorf("waits %s, want 40 seconds", got)
	}
}

// Without rules any number of calls may be in flight. With OneWrite writes are made one after the
// other, and calls with the same Alone are never in flight together.
func TestPaceLimitsCallsInFlight(t *testing.T) {
	write, read := Call{Method: http.MethodPatch}, Call{Method: http.MethodGet}
	status := Call{Method: http.MethodPost, Alone: "statuses of a commit"}
	for name, c := range map[string]struct {
		rules         Rules
		first, second Call
		fits          bool
	}{
		"no rules, two writes":           {Rules{}, write, write, true},
		"one write, two writes":          {Rules{OneWrite: true}, write, write, false},
		"one write, a read beside it":    {Rules{OneWrite: true}, write, read, true},
		"one call":                       {Rules{AtOnce: 1}, read, read, false},
		"the same name twice":            {Rules{}, status, status, false},
		"a name and a write without one": {Rules{}, status, write, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := NewPace(time.Now, c.rules)
				leave, err := p.Enter(t.Context(), c.first)
				if err != nil {
					t.Fatal(err)
				}
				second, err := p.Enter(t.Context(), c.second)
				if err == nil {
					second()
				}
				if f := fault.Of(err); (f == nil) != c.fits || f != nil && f.RetryAfter != retryAfter {
					t.Errorf("the second is told %v", err)
				}
				leave()
				if third, err := p.Enter(t.Context(), c.second); err != nil {
					t.Errorf("after the first has ended: %v", err)
				} else {
					third()
				}
				if len(p.alone) != 0 {
					t.Errorf("%d names are remembered that nobody uses", len(p.alone))
				}
			})
		})
	}
}

// No minute has more calls than the published limit, and a refused call learns when to retry.
func TestPaceKeepsABudget(t *testing.T) {
	const most = 80
	start := time.Unix(1_800_000_000, 0)
	now := start
	p := NewPace(func() time.Time { return now }, Rules{Budgets: []Budget{
		{Most: most, Within: time.Minute, Costs: func(c Call) int { return map[bool]int{true: 5}[c.Writes()] }},
	}})
	p.patience = 0
	var made []time.Time
	for now.Before(start.Add(10 * time.Minute)) {
		wait := enter(t, p, true)
		if wait == 0 {
			made = append(made, now)
			continue
		}
		if enter(t, p, false) != 0 {
			t.Fatal("a call waits that costs nothing")
		}
		now = now.Add(wait)
		if again := enter(t, p, true); again > time.Millisecond {
			t.Fatalf("told to come back after %v, and then after %v", wait, again)
		} else if again == 0 {
			made = append(made, now)
		}
	}
	for i, from := range made {
		spent := 0
		for _, at := range made[i:] {
			if at.Sub(from) < time.Minute {
				spent += 5
			}
		}
		if spent > most {
			t.Fatalf("%d are spent within a minute, of %d", spent, most)
		}
	}
	if want := 10 * most / 5 / 2; len(made) < want {
		t.Errorf("%d calls in ten minutes, want %d at least", len(made), want)
	}
}

// A short wait happens in the worker.
func TestPaceWaitsBrieflyForBudget(t *testing.T) {
	p := NewPace(time.Now, Rules{Budgets: []Budget{{Most: 300, Within: time.Second, Costs: func(Call) int { return 1 }}}})
	for range 150 {
		if got := enter(t, p, false); got != 0 {
			t.Fatalf("told to wait %v", got)
		}
	}
}
