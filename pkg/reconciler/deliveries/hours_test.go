// SPDX-License-Identifier: Apache-2.0

package deliveries

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// One of two receivers that has lost the API server for two hours answers 503 to every other delivery, and the other one takes
// the rest. Nothing is given up for that.
func TestHalfAnOutageLosesNothing(t *testing.T) {
	w := newWorld(t)
	w.run(time.Minute)
	attempts := 0
	w.receive = func(string) int {
		if attempts++; attempts*attempts%211%2 == 0 { // as good as any chance
			return http.StatusServiceUnavailable
		}
		return http.StatusAccepted
	}
	var all []string
	for n := range 2 * 60 {
		guid := fmt.Sprint("delivery-", n)
		w.deliver(guid, int64(n%3+1))
		all = append(all, guid)
		w.heard()
		w.run(time.Minute)
	}
	w.receive = nil
	w.run(3 * time.Hour)
	w.wantRecorded(all...)
	if len(w.events.Events) != 0 {
		t.Errorf("somebody was told %q", <-w.events.Events)
	}
}
