// SPDX-License-Identifier: Apache-2.0

package forward

import "time"

// Within sets how long a request may take.
func (f *Forwarder) Within(timeout time.Duration) *Forwarder {
	f.timeout = timeout
	return f
}

// MaxInFlight is maxInFlight.
const MaxInFlight = maxInFlight
