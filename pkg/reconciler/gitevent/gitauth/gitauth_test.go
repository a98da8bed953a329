// SPDX-License-Identifier: Apache-2.0

package gitauth

import (
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/provider"
)

func TestRenewAt(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ left, want time.Duration }{
		"a fresh token of an hour":                      {time.Hour, 30 * time.Minute},
		"one that was handed out before":                {40 * time.Minute, 20 * time.Minute},
		"a short one":                                   {30 * time.Second, 15 * time.Second},
		"one that is over by this clock, which is fast": {-time.Minute, minRenewal},
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(token provider.Token) time.Duration { return Grant{token: token}.renewAt(now).Sub(now) }
	for name, test := range tests {
		if got := at(provider.Token{ExpiresAt: now.Add(test.left)}); got != test.want {
			t.Errorf("%s: renewed after %v, want %v", name, got, test.want)
		}
	}
	if got := at(provider.Token{}); got != unknownLife/2 {
		t.Errorf("a token without an end: renewed after %v", got)
	}
}
