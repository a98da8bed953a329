// SPDX-License-Identifier: Apache-2.0

package redelivery

import (
	"errors"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// Many receivers that answer 503 now and then signal all the time. That delays no read, and causes
// few.
func TestManySignalsDelayNoRead(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	s := Schedule{}
	s.Read(begin, begin, ReadEvery)
	var reads []time.Duration
	for now := begin.Add(time.Minute); now.Before(begin.Add(2 * time.Minute)); now = now.Add(time.Second) {
		s.Signal(now)
		if !s.Due(now, false).After(now) {
			reads = append(reads, now.Sub(begin)-time.Minute)
			s.Read(now, now, ReadEvery)
		}
	}
	if len(reads) == 0 || reads[0] > settleAfter || len(reads) > 8 {
		t.Errorf("reads after %v", reads)
	}
}

func TestScheduleDue(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		change  func(s *Schedule)
		pending bool
		want    time.Duration
	}{
		"nothing happened":    {want: ReadEvery},
		"a result is pending": {pending: true, want: soon},
		"a signal": {
			change: func(s *Schedule) { s.Signal(begin.Add(time.Second)) }, want: time.Second + settleAfter,
		},
		"the last signal": {change: func(s *Schedule) { s.Signal(begin.Add(-settleAfter)) }, want: soon},
		"an earlier time": {change: func(s *Schedule) { s.At(begin.Add(time.Minute)) }, want: time.Minute},
		"a later time":    {change: func(s *Schedule) { s.At(begin.Add(time.Hour)) }, want: ReadEvery},
		"a failure":       {change: func(s *Schedule) { s.fail(begin, 1, nil) }, want: RetryFirst},
		"two failures":    {change: func(s *Schedule) { s.fail(begin, 2, nil) }, want: 2 * RetryFirst},
		"many failures":   {change: func(s *Schedule) { s.fail(begin, 99, nil) }, want: RetryAtMost},
		"a rate limit": {
			change: func(s *Schedule) { s.fail(begin, 1, fault.Throttledf("Limit", time.Hour, "429")) }, want: time.Hour,
		},
		"a signal after failing": {change: func(s *Schedule) { s.fail(begin, 9, nil); s.Signal(begin.Add(time.Second)) },
			want: time.Second + settleAfter},
		"many pages": {pending: true, change: func(s *Schedule) { s.Pages = 50 }, want: 6 * soon},
		"denied": {
			pending: true, change: func(s *Schedule) { s.Read(begin, begin, time.Hour) }, want: time.Hour,
		},
	} {
		s := Schedule{}
		s.Read(begin, begin, ReadEvery)
		if c.change != nil {
			c.change(&s)
		}
		if got := s.Due(begin.Add(time.Second), c.pending).Sub(begin); got != c.want {
			t.Errorf("%s: due after %v, want %v", name, got, c.want)
		}
	}
}

func (s *Schedule) fail(at time.Time, times int, err error) {
	if err == nil {
		err = errors.New("failed")
	}
	for range times {
		s.Failed(at, err, RetryFirst, RetryAtMost)
	}
}
