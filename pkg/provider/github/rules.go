// SPDX-License-Identifier: Apache-2.0

package github

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
	// madePerMinute is requests that make something. The 500 an hour for content are not counted: they are about what people
	// are notified of, and of that Plumbline writes nothing on GitHub.
	madePerMinute = 80
	// atOnce is half of GitHub's 100: after a takeover the calls of another process may still be in flight.
	atOnce = 50
)

// rulesOf are the published limits of an API, of one installation. GitHub Enterprise Server has none unless its administrator
// sets some; its answers tell then.
func rulesOf(apiHost string) provider.Rules {
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
	if c.Method == http.MethodPost {
		return 1
	}
	return 0
}
