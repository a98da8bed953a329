// SPDX-License-Identifier: Apache-2.0

package applog

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// long is a log of an hour in which much fails and is tried again.
func long(begin time.Time) []provider.Attempt {
	var log []provider.Attempt
	for n := range 900 {
		a := provider.Attempt{ID: int64(n + 1), GUID: fmt.Sprint(n * n % 211), At: begin.Add(time.Duration(n) * 4 * time.Second), Status: 503, Starts: true, Repository: 1}
		if n%7 == 0 {
			a.Status = 202
		}
		a.Again = n > 211
		log = append(log, a)
	}
	return log
}

// Whoever reads the log in pieces, some of it twice, knows what somebody knows who reads it at
// once: the ledger may be of any age, and lost.
func TestTheLedgerIsAFunctionOfTheLog(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	log := long(begin)
	whole := ledger{Through: begin}
	whole.account(log, begin.Add(24*time.Hour))
	whole.forget()
	if len(whole.Missed) < 10 {
		t.Fatalf("only %d are missed", len(whole.Missed))
	}
	for _, piece := range []int{1, 10, 333} {
		l := ledger{Through: begin}
		for end := 0; end < len(log); {
			end = min(end+piece, len(log))
			from, since := 0, l.from()
			for log[from].At.Before(since) {
				from++
			}
			l.account(log[from:end], begin.Add(24*time.Hour))
			l.forget()
		}
		if diff := cmp.Diff(whole, l); diff != "" {
			t.Errorf("in pieces of %d (-whole +pieces):\n%s", piece, diff)
		}
	}
}

// Of more than there is room for, every repository keeps its oldest, and the log is read again from
// where something has no room.
func TestAFullLedgerLosesNothing(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	var log []provider.Attempt
	for n := range 3 * maxMissed {
		repository := int64(1)
		if n%100 == 99 {
			repository = 2
		}
		log = append(log, provider.Attempt{ID: int64(n + 1), GUID: fmt.Sprintf("%036d", n), At: begin.Add(time.Duration(n) * time.Second), Status: 503, Starts: true, Repository: repository})
	}
	l := ledger{Through: begin}
	l.account(log, begin.Add(24*time.Hour))
	l.forget()
	count := map[int64]int{}
	for i := range l.Missed {
		count[l.Missed[i].Repository]++
	}
	if len(l.Missed) != maxMissed || count[2] != 3*maxMissed/100 {
		t.Errorf("%v are kept", count)
	}
	known := map[string]bool{}
	for _, m := range l.Missed {
		known[m.GUID] = true
	}
	for _, a := range log {
		if !known[a.GUID] && a.At.Before(l.from()) {
			t.Fatalf("%s of %v is not kept, and the log is read from %v", a.GUID, a.At, l.from())
		}
	}
	if text, err := json.Marshal(l); err != nil || len(text) > 700<<10 {
		t.Errorf("a full ledger has %d bytes, %v", len(text), err)
	}
}

// What had no room is found again with all of its attempts. Those that an outage refused do not
// count, although others were taken after it.
func TestAFullLedgerGivesUpNothingForAnOutage(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	var log []provider.Attempt
	attempt := func(guid string, status int) {
		at = at.Add(time.Second)
		log = append(log, provider.Attempt{ID: int64(len(log) + 1), GUID: guid, At: at, Status: status, Starts: true, Repository: 1})
	}
	l := ledger{Through: at}
	for n := range maxMissed {
		attempt(fmt.Sprint(n), 503)
	}
	for range 2 * maxRefused {
		attempt("without room", 503)
	}
	attempt("taken", 202)
	for range 3 {
		from, since := 0, l.from()
		for log[from].At.Before(since) {
			from++
		}
		l.account(log[from:], at)
		if ended := l.giveUp(nil); len(ended) != 0 {
			t.Fatalf("%d are given up: %s", len(ended), ended[0].why)
		}
		l.forget()
		if len(l.Missed) != maxMissed {
			t.Fatalf("%d are kept", len(l.Missed))
		}
	}
}

// One repository's many missed deliveries hold up no other's.
func TestRepositoriesTakeTurns(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	var missing []missed
	for n := range 100 {
		missing = append(missing, missed{GUID: fmt.Sprint(n), Repository: 1, First: now})
	}
	missing = append(missing, missed{GUID: "other", Repository: 2, First: now})
	l := newLine()
	for n := range 2 {
		m, at := l.next(missing, now)
		if m == nil || at.After(now) {
			t.Fatalf("nothing is due: %v", at)
		}
		l.last = now
		l.took(m, now)
		if now = now.Add(askEvery); n == 1 && m.GUID != "other" {
			t.Errorf("the second is %s of repository %d", m.GUID, m.Repository)
		}
	}
	if _, at := l.next(missing, now.Add(-time.Millisecond)); !at.Equal(now) {
		t.Errorf("the third is asked for at %v, want %v", at, now)
	}
}
