// SPDX-License-Identifier: Apache-2.0

package incomingwebhook

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
)

const (
	// maxFailures is how many requests a minute may have a wrong secret for each Repository, and
	// maxGuessed for how many Repositories that is counted. All unverified senders together send 20
	// a second, so it takes three minutes to evict an entry.
	maxFailures = 10
	maxGuessed  = 4096
	// RetryAfter is when the next secret is compared after too many failures.
	RetryAfter = time.Minute / maxFailures
)

// Guesses limits, for each Repository that requests name, those with a wrong secret. Names of
// Repositories that do not exist count as well, so that it shows nothing.
type Guesses struct {
	failures recent.Map[string, *rate.Limiter]
}

// NewGuesses returns a Guesses without failures.
func NewGuesses() *Guesses { return &Guesses{recent.Map[string, *rate.Limiter]{Max: maxGuessed}} }

// Exhausted reports whether the Repository of a request has too many failures. Then the secret must
// not be compared: otherwise guessing would go on.
func (g *Guesses) Exhausted(r *Request, now time.Time) bool {
	limiter, found := g.failures.Get(r.Namespace + "/" + r.Repository)
	return found && limiter.TokensAt(now) < 1
}

// Note counts a request with a wrong secret.
func (g *Guesses) Note(r *Request, now time.Time) {
	g.failures.GetOrCreate(r.Namespace+"/"+r.Repository, func() *rate.Limiter {
		return rate.NewLimiter(rate.Every(RetryAfter), maxFailures)
	}).AllowN(now, 1)
}
