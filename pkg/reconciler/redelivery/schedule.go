// SPDX-License-Identifier: Apache-2.0

package redelivery

import (
	"time"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	// ReadEvery is the time between two reads of a log while nothing happens.
	ReadEvery = 5 * time.Minute
	// soon is the time between two reads while the result of a request is pending, and for
	// settleFor after a signal: the log shows an attempt when it has ended, after 10 s at most.
	soon      = 10 * time.Second
	settleFor = time.Minute
	// settleAfter is the time between a signal and the first read.
	settleAfter = 2 * time.Second
	// manyPages is how many pages a read may have to be repeated soon. A longer one is repeated
	// later, so that reads take one call a second at most and leave time for requests.
	manyPages = 10
	// RetryFirst is the wait after the first failure that does not concern one Git service alone,
	// for example of the API server. It doubles up to RetryAtMost: after an outage undelivered
	// webhooks are requested within a minute, and the watch of the signals may be as late.
	RetryFirst = 5 * time.Second
	// RetryAtMost bounds the wait that RetryFirst begins.
	RetryAtMost = 20 * time.Second
)

// Schedule says when a log is read next. The zero value is due at once.
type Schedule struct {
	// Signalled is the last signal that Signal has seen.
	Signalled time.Time
	// Pages is the least number of pages of the next read.
	Pages int
	// Failures counts the steps in a row that failed.
	Failures int

	began, ended time.Time // of the last read
	every        time.Duration
	retryAt      time.Time // after a failure
	by           time.Time // set by At; zero for none
}

// Signal reports whether at is the time of a new signal. A signal ends the wait after a failure:
// its cause may be gone.
func (s *Schedule) Signal(at time.Time) bool {
	if !at.After(s.Signalled) {
		return false
	}
	s.Signalled, s.Failures = at, 0
	return true
}

// Read records a successful read, and how long the next one may wait while nothing happens.
func (s *Schedule) Read(began, ended time.Time, every time.Duration) {
	s.began, s.ended, s.every, s.by, s.Failures = began, ended, every, time.Time{}, 0
}

// Now makes a read due at once.
func (s *Schedule) Now() { s.began = time.Time{} }

// At makes a read due at this time, unless it is due earlier.
func (s *Schedule) At(at time.Time) { s.by = at }

// Failed records a failure. The wait before the next step is the one that the service asked for, or
// it doubles from first up to atMost.
func (s *Schedule) Failed(now time.Time, err error, first, atMost time.Duration) {
	s.Failures++
	s.began = now
	wait := Doubled(first, atMost, s.Failures-1)
	if f := fault.Of(err); f != nil && f.Class == fault.Throttled && f.RetryAfter > 0 {
		wait = f.RetryAfter
	}
	s.retryAt = now.Add(wait)
}

// Due returns when the log is to be read. Pending reports whether the result of a request is
// expected.
func (s *Schedule) Due(now time.Time, pending bool) time.Time {
	switch {
	case s.began.IsZero():
		return s.began
	case s.Failures > 0:
		return s.retryAt
	}
	paused := s.ended.Add(max(soon*time.Duration(s.Pages)/manyPages, min(soon, s.ended.Sub(s.began))))
	again := Latest(paused, s.began.Add(min(ReadEvery, soon*time.Duration(1+s.Pages/manyPages))))
	due := s.ended.Add(s.every)
	if !s.by.IsZero() {
		due = earliest(due, s.by)
	}
	settled := s.Signalled.Add(settleAfter)
	switch {
	case s.began.Before(settled): // not read since the signal; further signals delay nothing
		return Latest(paused, earliest(settled, again))
	case s.every > ReadEvery: // nothing can be read
	case pending, now.Before(s.Signalled.Add(settleFor)):
		return earliest(due, again)
	}
	return due
}

// Doubled returns first, doubled so many times, and atMost at most.
func Doubled(first, atMost time.Duration, times int) time.Duration {
	return min(atMost, first<<min(times, 10))
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Latest returns the later time.
func Latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
