// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// tally counts acts and records their times.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
	begun  time.Time
	spans  []*span
	rolls  [][2]time.Time
}

// span is a disturbance; end is zero while it lasts.
type span struct {
	what       string
	begin, end time.Time
}

func newTally() *tally { return &tally{counts: map[string]int{}, begun: time.Now()} }

// began records the start of the schedule.
func (t *tally) began() { t.begun = time.Now() }

func (t *tally) add(what string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[what] += n
}

// begin records a disturbance; end ends it.
func (t *tally) begin(what string) (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &span{what: what, begin: time.Now()}
	t.spans = append(t.spans, s)
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		s.end = time.Now()
	}
}

// rolled records a time in which no delivery may fail.
func (t *tally) rolled(begin, end time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rolls = append(t.rolls, [2]time.Time{begin, end})
}

// quiet reports whether only the receivers were replaced from begin to end.
func (t *tally) quiet(begin, end time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.rolls, func(r [2]time.Time) bool { return begin.After(r[0]) && end.Before(r[1]) })
}

// between returns the disturbances that touch a time, one a line.
func (t *tally) between(begin, end time.Time) (lines []moment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.spans {
		if s.begin.After(end) || !s.end.IsZero() && s.end.Before(begin) {
			continue
		}
		lines = append(lines, moment{
			s.begin, fmt.Sprintf("%s, for %v", s.what, s.end.Sub(s.begin).Round(10*time.Millisecond)),
		})
	}
	return lines
}

// moment is a line of a timeline.
type moment struct {
	at   time.Time
	what string
}

// lines returns moments in their order, by the time since the start.
func (t *tally) lines(moments []moment) (lines []string) {
	slices.SortStableFunc(moments, func(a, b moment) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	for _, m := range moments {
		lines = append(lines, fmt.Sprintf("%8.2fs %s", m.at.Sub(t.begun).Seconds(), m.what))
	}
	return lines
}

func (t *tally) table() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	for name := range t.counts {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "%7d  %s\n", t.counts[name], name)
	}
	return b.String()
}
