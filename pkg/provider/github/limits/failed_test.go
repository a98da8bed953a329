// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"context"
	"net/http"
	"testing"
	"time"

	gh "github.com/google/go-github/v60/github"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

func TestClassifiedKnowsGoGitHubsOwnRefusals(t *testing.T) {
	wait := 90 * time.Second
	cases := []struct {
		name  string
		err   error
		class fault.Class
		wait  time.Duration
	}{
		{"the primary limit it remembers", &gh.RateLimitError{
			Rate: gh.Rate{Reset: gh.Timestamp{Time: time.Now().Add(wait)}}, Response: &http.Response{},
		}, fault.Throttled, wait},
		{"one that has just ended", &gh.RateLimitError{Response: &http.Response{}}, fault.Throttled, secondaryWait},
		{"the secondary limit it remembers", &gh.AbuseRateLimitError{RetryAfter: &wait, Response: &http.Response{}},
			fault.Throttled, wait},
		{"without a time", &gh.AbuseRateLimitError{Response: &http.Response{}}, fault.Throttled, secondaryWait},
		{"our own deadline", context.DeadlineExceeded, fault.Transient, 0},
		{"an answer still being computed", &gh.AcceptedError{}, fault.Transient, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := fault.Of(Failed("x", c.err))
			if f.Class != c.class || f.Reason == "Error" || f.RetryAfter > c.wait || f.RetryAfter < c.wait-5*time.Second {
				t.Errorf("got %+v, want %s after %s", f, c.class, c.wait)
			}
		})
	}
	if Failed("x", nil) != nil {
		t.Error("nil became an error")
	}
}
