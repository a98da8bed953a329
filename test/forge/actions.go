// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"net/http"
	"strconv"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge/internal/traffic"
)

// Action is what a fault does with a call. Take one of the constructors; those
// that name no GitHub answer do the same on a GitLab.
type Action = traffic.Action

// Answer answers without doing what was asked.
func Answer(code int, header http.Header, body string) Action {
	return traffic.Answered(code, header, body)
}

// say answers what GitHub would say, without doing what was asked.
func say(make func(*call) answer) Action {
	return traffic.Say(func(c traffic.Call) answer { return make(c.(*call)) })
}

// PrimaryRateLimit is GitHub's 403 for a spent hourly budget, which comes back at reset.
func PrimaryRateLimit(reset time.Time) Action {
	return say(func(*call) answer { return rateLimited(reset) })
}

func rateLimited(reset time.Time) answer {
	const doc = docs + "/using-the-rest-api/rate-limits-for-the-rest-api"
	return refuse(http.StatusForbidden, doc, "API rate limit exceeded for installation.").
		With("X-RateLimit-Remaining", "0").
		With("X-RateLimit-Reset", strconv.FormatInt(reset.Unix(), 10))
}

// SecondaryRateLimit is GitHub's 403 for too much at once. A retryAfter of zero leaves the header
// out, as GitHub sometimes does; otherwise it is rounded up to seconds.
func SecondaryRateLimit(retryAfter time.Duration) Action {
	return say(func(*call) answer {
		const doc = docs + "/using-the-rest-api/rate-limits-for-the-rest-api#about-secondary-rate-limits"
		a := refuse(http.StatusForbidden, doc,
			"You have exceeded a secondary rate limit. Please wait a few minutes before you try again.")
		if retryAfter > 0 {
			secs := (retryAfter + time.Second - 1) / time.Second
			a = a.With("Retry-After", strconv.Itoa(int(secs)))
		}
		return a
	})
}

// ServerError502HTML is the page of the service's edge when the API is down.
func ServerError502HTML() Action { return traffic.EdgeDown(http.StatusBadGateway) }

// EdgePage is the unicorn that GitHub's edge shows.
func (c *call) EdgePage(code int) answer {
	a := answer{Status: code, Raw: []byte("<!DOCTYPE html>\n<html><head><title>Unicorn! &middot; GitHub</title></head>" +
		"<body><p><strong>We couldn't respond to your request in time.</strong></p></body></html>\n")}
	return a.With("Content-Type", "text/html; charset=utf-8").With("Server", "GitHub.com")
}

// Unauthorized401 is the answer to a token GitHub does not know.
func Unauthorized401() Action {
	return say(func(*call) answer { return refuse(http.StatusUnauthorized, docs, "Bad credentials") })
}

// Forbidden403 is the answer to an App that lacks the route's permission.
func Forbidden403() Action {
	return say((*call).notAccessible)
}

// NotFound404 is the answer for what is missing or hidden.
func NotFound404() Action { return say(func(c *call) answer { return notFound(c.rt.doc) }) }

// Hang keeps the call without doing it until until is closed, the client goes
// away or the forge closes; then the connection is dropped. A nil until never ends.
func Hang(until <-chan struct{}) Action { return traffic.Hang(until) }

// Drop closes the connection without doing or answering anything. Go's client
// repeats a GET by itself when it had used the connection before: to be sure
// that it sees the failure, let the fault drop more than one call.
func Drop() Action { return traffic.Drop() }

// ApplyThenAnswer does what was asked and answers with code and the body of a
// broken edge: the client cannot know that it landed.
func ApplyThenAnswer(code int) Action { return traffic.ApplyThenEdgeDown(code) }

// ApplyThenDrop does what was asked and closes the connection.
func ApplyThenDrop() Action { return traffic.ApplyThenDrop() }

// Hold does nothing until release is closed or sends, then does what was
// asked and answers it. If the client or the forge goes first, nothing is done.
func Hold(release <-chan struct{}) Action { return traffic.Hold(release) }

// Delay does what was asked so much later, as a service that is not on this machine.
func Delay(d time.Duration) Action { return traffic.Delay(d) }

// ApplyThenHold does what was asked, then keeps the answer until release.
func ApplyThenHold(release <-chan struct{}) Action { return traffic.ApplyThenHold(release) }
