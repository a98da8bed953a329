// SPDX-License-Identifier: Apache-2.0

// Package limits has GitHub's limits: the published rules, and what its errors say about a limit
// that was exceeded.
package limits

import (
	"net/http"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// GitHub's limits for an installation within a minute
// (https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api).
const (
	pointsPerMinute = 900
	pointsOfWrite   = 5
	// madePerMinute is the limit of requests that generate content, toldPerHour of those that
	// notify people.
	madePerMinute = 80
	toldPerHour   = 500
	// atOnce is half of GitHub's 100: after a takeover, calls of another process may still be in
	// flight.
	atOnce = 50
)

// Of returns the published limits of an API for one installation. GitHub Enterprise Server has none
// unless its administrator sets some; its answers contain them then.
func Of(apiHost string) provider.Rules {
	if apiHost != "api.github.com" && !strings.HasSuffix(apiHost, ".ghe.com") {
		return provider.Rules{}
	}
	return provider.Rules{
		AtOnce: atOnce,
		// GitHub recommends one request after the other, and limits writes most
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

// Notifies reports whether a request creates a comment. An edit sends no notification.
func Notifies(req *http.Request) bool {
	return req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/comments")
}
