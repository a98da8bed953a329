// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/recent"
	"github.com/plumbline-ci/plumbline/pkg/receiver/incomingwebhook"
)

// guesses limits, for each Repository that requests to /incoming name, those that no secret
// verifies. Names of Repositories that do not exist count as well, so that it shows nothing.
type guesses struct {
	failures recent.Map[string, *rate.Limiter]
}

func guessed(request *incomingwebhook.Request) string { return request.Namespace + "/" + request.Repository }

// refuse answers a request for a Repository with too many failures, nil for others. Its secret is
// not compared: otherwise guessing would go on.
func (g *guesses) refuse(request *incomingwebhook.Request, now time.Time) *answer {
	limiter, found := g.failures.Get(guessed(request))
	if !found || limiter.TokensAt(now) >= 1 {
		return nil
	}
	a := rejected(http.StatusTooManyRequests, reasonTooManyFailures, "too many requests for this Repository "+
		"had a wrong secret: correct the secret, and send the request again after the time in Retry-After")
	a.retryAfter, a.delayed = time.Minute/maxFailures, true
	return a
}

// note counts a request that no secret verifies.
func (g *guesses) note(request *incomingwebhook.Request, now time.Time) {
	g.failures.GetOrCreate(guessed(request), func() *rate.Limiter {
		return rate.NewLimiter(rate.Every(time.Minute/maxFailures), maxFailures)
	}).AllowN(now, 1)
}
