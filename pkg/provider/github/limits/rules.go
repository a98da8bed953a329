// SPDX-License-Identifier: Apache-2.0

// Package limits knows what GitHub limits: the rules that it publishes, and what it says of one
// that was exceeded.
package limits

import (
	"net/http"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// What GitHub allows an installation within a minute
// (https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api).
const (
	pointsPerMinute = 900
	pointsOfWrite   = 5
	// madePerMinute is requests that generate content, toldPerHour those of them that people are
	// notified of.
	madePerMinute = 80
	toldPerHour   = 500
	// atOnce is half of GitHub's 100: after a takeover the calls of another process may still be in
	// flight.
	atOnce = 50
)

// Of are the published limits of an API, of one installation. GitHub Enterprise Server has none
// unless its administrator sets some; its answers tell then.
func Of(apiHost string) provider.Rules {
	if apiHost != "api.github.com" && !strings.HasSuffix(apiHost, ".ghe.com") {
		return provider.Rules{}
	}
	return provider.Rules{
		AtOnce: atOnce,
		// GitHub asks for one request after the other, and limits what changes something most
		// (https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api).
		OneWrite: true,
		Budgets: []provider.Budget{
			{Most: pointsPerMinute, Within: time.Minute, Costs: points},
			{Most: madePerMinute, Within: time.Minute, Costs: made},
			{Most: toldPerHour, Within: time.Hour, Costs: told},
		},
	}
}

func points(c provider.Call) int {
	if c.Writes() {
		return pointsOfWrite
	}
	return 1
}

func made(c provider.Call) int {
	if c.Method == http.MethodPost && !c.Repeats {
		return 1
	}
	return 0
}

func told(c provider.Call) int {
	if c.Notifies {
		return 1
	}
	return 0
}

// Notifies reports whether a request writes a comment. Nobody is notified of an edit.
func Notifies(req *http.Request) bool {
	return req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/comments")
}
