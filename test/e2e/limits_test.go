// SPDX-License-Identifier: Apache-2.0

package e2e

import "time"

// Every deadline of the scenarios, in one place. They are upper bounds that tests poll up to, never waits.
const (
	// soon is enough for anything that needs no retry, on a busy machine.
	soon = 60 * time.Second
	// afterFault is spec/resilience.md's bound for recovery: max(2·D, 30 s) after a fault of D, plus soon.
	afterFault = 90 * time.Second
	// outage is how long a scripted outage lasts where the scenario does not say.
	outage = 3 * time.Second
	// pollEvery is how often the API server is asked for a state that a test waits for.
	pollEvery = 50 * time.Millisecond
)
