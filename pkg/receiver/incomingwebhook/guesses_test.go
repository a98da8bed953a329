// SPDX-License-Identifier: Apache-2.0

package incomingwebhook

import (
	"strconv"
	"testing"
	"time"
)

// A sender who invents names of Repositories does not make the receiver forget its guesses for one.
func TestInventedNamesEvictNoFailures(t *testing.T) {
	t.Parallel()
	g, now, app := NewGuesses(), time.Unix(1, 0), &Request{Namespace: "ci", Repository: "app"}
	for range maxFailures {
		g.Note(app, now)
	}
	for i := range counters {
		g.Note(&Request{Repository: strconv.Itoa(i)}, now)
	}
	if !g.Exhausted(app, now) {
		t.Error("the failures of a Repository are forgotten")
	}
	if g.Exhausted(app, now.Add(RetryAfter)) {
		t.Error("no secret is compared after the time in Retry-After")
	}
}
