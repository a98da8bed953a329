// SPDX-License-Identifier: Apache-2.0

package redelivery

import "time"

const (
	// MaxRefused is how often a delivery is requested that fails although others succeed, which is
	// for more than three hours. For so long half of the receivers may be without the API server,
	// or a namespace above its budget, and neither is the delivery's fault. An outage, however
	// long, refuses nothing.
	MaxRefused = 8
	// Overlap is how far back a log is read again: an attempt shows in the log when it has ended,
	// 10 s after it began at most, and not on all servers of the service at once.
	Overlap = 2 * time.Minute
	// RememberedFor is how long it is stored that a delivery was given up: a log lists an attempt
	// for three days, or for seven, and this is a day more.
	RememberedFor = 8 * 24 * time.Hour
	// RetryLater is the longest wait between two requests for a delivery.
	RetryLater = time.Hour
	// SecondAfter is the wait before the second request for a delivery. Later waits begin with
	// retryAfter and double up to RetryLater.
	SecondAfter = 20 * time.Second
	retryAfter  = 5 * time.Minute
	// resultWithin is how long an attempt that was requested usually takes to show in the log. If
	// it does not, the next request waits twice that and so on, up to RetryLater.
	resultWithin = time.Minute
)

// Delivery is a delivery that no receiver has acknowledged.
type Delivery struct {
	GUID string `json:"guid"`
	// ID is the attempt that is repeated, and FirstID the first one.
	ID      int64 `json:"id"`
	FirstID int64 `json:"-"`
	// Repository is the number of the GitHub repository or of the GitLab webhook. Tenant is the
	// namespace that serves it; "" if none is known.
	Repository int64  `json:"repository,omitempty"`
	Tenant     string `json:"-"`
	// First and Last are the times of the first and of the last attempt, by the service's clock.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Tries counts the attempts after the first.
	Tries int `json:"tries,omitempty"`
	// Refused counts the attempts that failed although another delivery had succeeded since the
	// previous attempt.
	Refused int `json:"refused,omitempty"`
	// GaveUp is set when the delivery is not requested any more.
	GaveUp bool `json:"gaveUp,omitempty"`
}

// request is a request that this process made for a delivery.
type request struct {
	at    time.Time
	tries int // of the delivery at that time
	// before counts the requests before it without a new attempt in the log.
	before int
}

// Queue decides which delivery of one log is requested next. It is memory only: after a restart, a
// few deliveries are requested once more than needed.
type Queue struct {
	// Recovered is the last sign that receivers record deliveries: a signal, or an attempt that
	// succeeded.
	Recovered time.Time

	requests map[string]request // by GUID
	// repositories and tenants hold the time of their last request: they take turns.
	repositories map[int64]time.Time
	tenants      map[string]time.Time
}

// NewQueue returns an empty queue.
func NewQueue() Queue {
	return Queue{requests: map[string]request{}, repositories: map[int64]time.Time{}, tenants: map[string]time.Time{}}
}

// Next returns the delivery to request next, and when; nil if there is none. Free returns when a
// delivery may be requested for other reasons, and false for one that is not requested.
func (q *Queue) Next(
	all []Delivery, now time.Time, free func(*Delivery) (time.Time, bool),
) (next *Delivery, at time.Time) {
	for i := range all {
		d := &all[i]
		from, wanted := free(d)
		if d.GaveUp || !wanted {
			continue
		}
		due := Latest(q.due(d), from)
		switch {
		case next == nil, due.Before(at) && at.After(now):
		case due.After(now), !q.before(d, next):
			continue
		}
		next, at = d, due
	}
	return next, at
}

// before reports whether d is requested before other: the tenant whose last request is longest ago
// goes first, then such a repository, then the delivery with fewer attempts.
func (q *Queue) before(d, other *Delivery) bool {
	if its, others := q.tenants[d.Tenant], q.tenants[other.Tenant]; !its.Equal(others) {
		return its.Before(others)
	}
	if its, others := q.repositories[d.Repository], q.repositories[other.Repository]; !its.Equal(others) {
		return its.Before(others)
	}
	return d.Tries+q.requests[d.GUID].before < other.Tries+q.requests[other.GUID].before
}

// due returns when a delivery may be requested.
func (q *Queue) due(d *Delivery) time.Time {
	last, requested := q.requests[d.GUID]
	switch {
	case requested && last.tries == d.Tries: // the result is not known
		return last.at.Add(Doubled(resultWithin, RetryLater, last.before))
	case d.Tries == 0:
		return time.Time{}
	}
	since := Latest(d.Last, last.at)
	if d.Tries == 1 || d.Refused == 0 && q.Recovered.After(since) {
		return since.Add(SecondAfter)
	}
	return since.Add(Doubled(retryAfter, RetryLater, d.Tries-2))
}

// Requested records a request for a delivery, also one that failed.
func (q *Queue) Requested(d *Delivery, now time.Time) {
	r := request{at: now, tries: d.Tries}
	if last, known := q.requests[d.GUID]; known && last.tries == d.Tries {
		r.before = last.before + 1
	}
	q.requests[d.GUID] = r
	q.repositories[d.Repository], q.tenants[d.Tenant] = now, now
}

// RequestedAt returns when a delivery was requested last; false if this process never did.
func (q *Queue) RequestedAt(guid string) (time.Time, bool) {
	r, known := q.requests[guid]
	return r.at, known
}

// Pending reports whether the result of a request is expected.
func (q *Queue) Pending(all []Delivery, now time.Time) bool {
	for i := range all {
		r, known := q.requests[all[i].GUID]
		if known && r.tries == all[i].Tries && now.Before(r.at.Add(resultWithin)) {
			return true
		}
	}
	return false
}

// Prune drops what is known of other deliveries than these.
func (q *Queue) Prune(all []Delivery) {
	was := *q
	*q = NewQueue()
	q.Recovered = was.Recovered
	for i := range all {
		carry(q.requests, was.requests, all[i].GUID)
		carry(q.repositories, was.repositories, all[i].Repository)
		carry(q.tenants, was.tenants, all[i].Tenant)
	}
}

func carry[K comparable, V any](to, from map[K]V, key K) {
	if value, known := from[key]; known {
		to[key] = value
	}
}
