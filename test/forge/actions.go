// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"net/http"
	"strconv"
	"time"
)

// Action is what a fault does with a call. Take one of the constructors.
type Action func(*hit) outcome

// hit is a call that a fault got.
type hit struct {
	c      *call
	n      int
	handle *FaultHandle
}

// outcome is what the client sees and what was written.
type outcome struct {
	answer answer
	write  *Write // the logged write, when the call was applied
	drop   bool
}

func (h *hit) apply() outcome {
	a, w := h.c.apply(h.n)
	return outcome{answer: a, write: w}
}

// until waits for ch, the client's departure or the end of the forge; it tells
// whether ch came first.
func (h *hit) until(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	case <-h.c.r.Context().Done():
	case <-h.c.g.done:
	}
	return false
}

// Answer answers without doing what was asked.
func Answer(code int, header http.Header, body string) Action {
	return func(*hit) outcome {
		return outcome{answer: answer{status: code, header: header.Clone(), raw: []byte(body)}}
	}
}

func say(make func(*hit) answer) Action {
	return func(h *hit) outcome {
		h.c.g.mu.Lock()
		defer h.c.g.mu.Unlock()
		return outcome{answer: h.c.finish(make(h))}
	}
}

// PrimaryRateLimit is GitHub's 403 for a spent hourly budget, which comes back
// at reset.
func PrimaryRateLimit(reset time.Time) Action {
	return say(func(*hit) answer { return rateLimited(reset) })
}

func rateLimited(reset time.Time) answer {
	const doc = docs + "/using-the-rest-api/rate-limits-for-the-rest-api"
	return refuse(http.StatusForbidden, doc, "API rate limit exceeded for installation.").
		with("X-RateLimit-Remaining", "0").
		with("X-RateLimit-Reset", strconv.FormatInt(reset.Unix(), 10))
}

// SecondaryRateLimit is GitHub's 403 for too much at once. A retryAfter of
// zero leaves the header out, as GitHub sometimes does; otherwise it is
// rounded up to seconds.
func SecondaryRateLimit(retryAfter time.Duration) Action {
	return say(func(*hit) answer {
		const doc = docs + "/using-the-rest-api/rate-limits-for-the-rest-api#about-secondary-rate-limits"
		a := refuse(http.StatusForbidden, doc,
			"You have exceeded a secondary rate limit. Please wait a few minutes before you try again.")
		if retryAfter > 0 {
			secs := (retryAfter + time.Second - 1) / time.Second
			a = a.with("Retry-After", strconv.Itoa(int(secs)))
		}
		return a
	})
}

// ServerError502HTML is the page of GitHub's edge when the API is down.
func ServerError502HTML() Action { return func(*hit) outcome { return outcome{answer: unicorn(502)} } }

func unicorn(code int) answer {
	a := answer{status: code, raw: []byte("<!DOCTYPE html>\n<html><head><title>Unicorn! &middot; GitHub</title></head>" +
		"<body><p><strong>We couldn't respond to your request in time.</strong></p></body></html>\n")}
	return a.with("Content-Type", "text/html; charset=utf-8").with("Server", "GitHub.com")
}

// Unauthorized401 is the answer to a token GitHub does not know.
func Unauthorized401() Action {
	return say(func(*hit) answer { return refuse(http.StatusUnauthorized, docs, "Bad credentials") })
}

// Forbidden403 is the answer to an App that lacks the route's permission.
func Forbidden403() Action {
	return say(func(h *hit) answer { return h.c.notAccessible() })
}

// NotFound404 is the answer for what is missing or hidden.
func NotFound404() Action { return say(func(h *hit) answer { return notFound(h.c.rt.doc) }) }

// Hang keeps the call without doing it until until is closed, the client goes
// away or the forge closes; then the connection is dropped. A nil until never ends.
func Hang(until <-chan struct{}) Action {
	return func(h *hit) outcome {
		h.until(until)
		return outcome{drop: true}
	}
}

// Drop closes the connection without doing or answering anything. Go's client
// repeats a GET by itself when it had used the connection before: to be sure
// that it sees the failure, let the fault drop more than one call.
func Drop() Action { return func(*hit) outcome { return outcome{drop: true} } }

// ApplyThenAnswer does what was asked and answers with code and the body of a
// broken edge: the client cannot know that it landed.
func ApplyThenAnswer(code int) Action {
	return func(h *hit) outcome {
		out := h.apply()
		out.answer = unicorn(code)
		return out
	}
}

// ApplyThenDrop does what was asked and closes the connection.
func ApplyThenDrop() Action {
	return func(h *hit) outcome {
		out := h.apply()
		out.drop = true
		return out
	}
}

// Hold does nothing until release is closed or sends, then does what was
// asked and answers it. If the client or the forge goes first, nothing is done.
func Hold(release <-chan struct{}) Action {
	return func(h *hit) outcome {
		if !h.until(release) {
			return outcome{drop: true}
		}
		return h.apply()
	}
}

// ApplyThenHold does what was asked, then keeps the answer until release.
func ApplyThenHold(release <-chan struct{}) Action {
	return func(h *hit) outcome {
		out := h.apply()
		if !h.until(release) {
			out.drop = true
		}
		return out
	}
}
