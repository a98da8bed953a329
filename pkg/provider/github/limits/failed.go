// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"errors"
	"time"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/provider"
)

// secondaryWait is how long a secondary limit without a time lasts (G2).
const secondaryWait = time.Minute

// Failed is provider.Failed, and also classifies calls that go-github itself refuses to make.
func Failed(what string, err error) error {
	var limit *gh.RateLimitError
	var abuse *gh.AbuseRateLimitError
	switch {
	case errors.As(err, &limit):
		err = throttled(time.Until(limit.Rate.Reset.Time))
	case errors.As(err, &abuse):
		err = throttled(abuse.GetRetryAfter())
	}
	return provider.Failed(what, err)
}

// throttled returns the fault of a call that go-github refuses because it remembers a limit.
func throttled(wait time.Duration) error {
	if wait <= 0 {
		wait = secondaryWait
	}
	return fault.Throttledf(fault.ReasonRateLimited, wait, "waiting for GitHub's rate limit to be lifted")
}
