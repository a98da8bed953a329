// SPDX-License-Identifier: Apache-2.0

package applog

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/provider"
	"github.com/plumbline-ci/plumbline/pkg/reconciler/redelivery"
)

// long is a log of an hour in which many deliveries fail and are tried again.
func long(begin time.Time) []provider.Attempt {
	var log []provider.Attempt
	for n := range 900 {
		a := provider.Attempt{ID: int64(n + 1), GUID: fmt.Sprint(n * n % 211),
			At: begin.Add(time.Duration(n) * 4 * time.Second), Status: 503, Starts: true, Repository: 1}
		if n%7 == 0 {
			a.Status = 202
		}
		a.Again = n > 211
		log = append(log, a)
	}
	return log
}

// Reading the log in pieces, some of it twice, gives the same ledger as reading it at once.
func TestLedgerDependsOnTheLogAlone(t *testing.T) {
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

// A full ledger keeps the oldest deliveries of every repository. The log is read again from the
// oldest delivery that it dropped.
func TestFullLedgerLosesNothing(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	var log []provider.Attempt
	for n := range 3 * maxMissed {
		repository := int64(1)
		if n%100 == 99 {
			repository = 2
		}
		log = append(log, provider.Attempt{ID: int64(n + 1), GUID: fmt.Sprintf("%036d", n),
			At: begin.Add(time.Duration(n) * time.Second), Status: 503, Starts: true, Repository: repository})
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

// Deliveries that a full ledger dropped are found again with all attempts. Those of an outage do
// not count as refused, although others succeeded after it.
func TestFullLedgerCountsNoOutageAsRefusal(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	var log []provider.Attempt
	attempt := func(guid string, status int) {
		at = at.Add(time.Second)
		log = append(log, provider.Attempt{
			ID: int64(len(log) + 1), GUID: guid, At: at, Status: status, Starts: true, Repository: 1,
		})
	}
	l := ledger{Through: at}
	for n := range maxMissed {
		attempt(fmt.Sprint(n), 503)
	}
	for range 2 * redelivery.MaxRefused {
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
