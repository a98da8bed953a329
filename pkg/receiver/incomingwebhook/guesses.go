// SPDX-License-Identifier: Apache-2.0

package incomingwebhook

import (
	"hash/maphash"
	"time"

	"golang.org/x/time/rate"

	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
)

const (
	// maxFailures is how many requests a minute may have a wrong secret for each Repository.
	maxFailures = 10
	// counters is how many counters all names share, 18 MB if all are in use. A sender who exhausts
	// all of them with invented names needs 10,000 requests a second.
	counters = 1 << 16
	// RetryAfter is when the next secret is compared after too many failures.
	RetryAfter = time.Minute / maxFailures
)

// Guesses limits, for each Repository that requests name, those with a wrong secret. Names of
// Repositories that do not exist count as well, so that it shows nothing. No counter is evicted:
// otherwise a sender who invents names could go on guessing.
type Guesses struct {
	seed     maphash.Seed
	failures recent.Map[uint64, *rate.Limiter]
}

// NewGuesses returns a Guesses without failures.
func NewGuesses() *Guesses {
	return &Guesses{maphash.MakeSeed(), recent.Map[uint64, *rate.Limiter]{Max: counters}}
}

// counter returns which counter the Repository of a request has. Senders cannot know which names
// share one.
func (g *Guesses) counter(r *Request) uint64 {
	return maphash.String(g.seed, r.Namespace+"/"+r.Repository) % counters
}

// Exhausted reports whether the Repository of a request has too many failures. Then the secret must
// not be compared: otherwise guessing would go on.
func (g *Guesses) Exhausted(r *Request, now time.Time) bool {
	limiter, found := g.failures.Get(g.counter(r))
	return found && limiter.TokensAt(now) < 1
}

// Note counts a request with a wrong secret.
func (g *Guesses) Note(r *Request, now time.Time) {
	g.failures.GetOrCreate(g.counter(r), func() *rate.Limiter {
		return rate.NewLimiter(rate.Every(RetryAfter), maxFailures)
	}).AllowN(now, 1)
}
