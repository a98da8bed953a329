// SPDX-License-Identifier: Apache-2.0

package redelivery

import (
	"fmt"
	"testing"
	"time"
)

// Many undelivered webhooks of one repository do not delay those of another one, and none is
// requested before the caller allows it.
func TestQueueAlternatesBetweenRepositories(t *testing.T) {
	const every = time.Second / 2
	now := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	var all []Delivery
	for n := range 100 {
		all = append(all, Delivery{GUID: fmt.Sprint(n), Repository: 1, First: now})
	}
	all = append(all, Delivery{GUID: "other", Repository: 2, First: now}, Delivery{GUID: "unwanted", Repository: 3})
	q, last := NewQueue(), time.Time{}
	free := func(d *Delivery) (time.Time, bool) { return last.Add(every), d.GUID != "unwanted" }
	for n := range 2 {
		d, at := q.Next(all, now, free)
		if d == nil || at.After(now) {
			t.Fatalf("nothing is due: %v", at)
		}
		last = now
		q.Requested(d, now)
		if now = now.Add(every); n == 1 && d.GUID != "other" {
			t.Errorf("the second is %s of repository %d", d.GUID, d.Repository)
		}
	}
	if _, at := q.Next(all, now.Add(-time.Millisecond), free); !at.Equal(now) {
		t.Errorf("the third is due at %v, want %v", at, now)
	}
}

// Both logs use the same waits: 20 s, then 5 minutes and so on up to an hour. A sign that receivers
// are back shortens them, unless others succeeded meanwhile. Without a result the waits double from
// a minute on.
func TestQueueWaits(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		d         Delivery
		recovered time.Duration // after the last attempt
		requests  int           // without a result
		want      time.Duration
	}{
		"new":                       {want: -time.Hour},
		"second":                    {d: Delivery{Tries: 1}, want: SecondAfter},
		"third":                     {d: Delivery{Tries: 2}, want: 5 * time.Minute},
		"fourth":                    {d: Delivery{Tries: 3}, want: 10 * time.Minute},
		"late":                      {d: Delivery{Tries: 99}, want: time.Hour},
		"receivers are back":        {d: Delivery{Tries: 9}, recovered: time.Second, want: SecondAfter},
		"refused":                   {d: Delivery{Tries: 9, Refused: 1}, recovered: time.Second, want: time.Hour},
		"requested":                 {requests: 1, want: time.Minute},
		"requested again":           {requests: 3, want: 4 * time.Minute},
		"requested again and again": {requests: 99, want: time.Hour},
	} {
		c.d.GUID, c.d.Last = "guid", now
		q := NewQueue()
		if c.recovered > 0 {
			q.Recovered = now.Add(c.recovered)
		}
		for range c.requests {
			q.Requested(&c.d, now)
		}
		_, at := q.Next([]Delivery{c.d}, now, func(*Delivery) (time.Time, bool) { return now.Add(-time.Hour), true })
		if got := at.Sub(now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
