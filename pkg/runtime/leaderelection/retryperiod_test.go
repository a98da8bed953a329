// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"fmt"
	"testing"
	"time"
)

// Leases that are taken together are not renewed together for long. Their periods differ, and none
// is longer than configured.
func TestLeasesAreRenewedAtDifferentTimes(t *testing.T) {
	t.Parallel()
	const period, leases = 10 * time.Second, 50
	times := map[time.Duration]bool{}
	for n := range leases {
		each := apart(fmt.Sprintf("plumbline-controller.gitevent.%02d-of-%02d", n, leases), period)
		if each > period || each < period*4/5 {
			t.Errorf("lease %d is renewed every %v of %v", n, each, period)
		}
		times[each.Round(period/100)] = true
	}
	if len(times) < 10 {
		t.Errorf("%d leases have %d times", leases, len(times))
	}
}
