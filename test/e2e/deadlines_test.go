// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"
)

// Every deadline of the scenarios, in one place. They are upper bounds that tests poll up to, never
// waits.
const (
	// soon is enough for anything that needs no retry, also on a busy machine.
	soon = 60 * time.Second
	// afterFault is the bound for recovery: max(2·D, 30 s) after a fault of D, plus soon.
	afterFault = 90 * time.Second
	// slotKept is the bound if a run was cancelled between the moment it got its slot and its
	// creation: its slot is kept for two minutes, and read again every 30 s (docs/adr/0041).
	slotKept = 150*time.Second + soon
	// outage is how long a scripted outage lasts unless the scenario says otherwise.
	outage = 3 * time.Second
	// pollEvery is how often tests read the state that they wait for.
	pollEvery = 50 * time.Millisecond
	// apiWait is the -api-wait of all receivers, for a machine that others use; 3 seconds by
	// default.
	apiWait = 30 * time.Second
	// trialLimit is for one event of C9 and D2 from its delivery to its end, fault and restart
	// included.
	trialLimit = 90 * time.Second
	// operatorRetry is the -operator-retry of D2's controllers; 5 minutes by default.
	operatorRetry = time.Second
	// slowRetry is the -operator-retry of a test that checks that retries are slow.
	slowRetry = 4 * time.Second
	// workedOff is enough for 500 events of one host, which are processed three at a time.
	workedOff = 4 * time.Minute
	// aMoment is what is left of a claim's day: enough to see that the claim still exists.
	aMoment = 3 * time.Second
	// credentialLook is the -credential-look of the controllers whose Secrets change; 20 seconds as
	// shipped.
	credentialLook = time.Second
	// lateReports is the -late-reports of all controllers; 45 seconds by default.
	lateReports = 3 * time.Second
	// closeWindow is the -close-window of all controllers; five minutes by default. Two fifths of
	// it are more than a second, which is what the times of events are told in.
	closeWindow = 5 * time.Second
	// takeover is enough for a second controller to take the lease (6 s in tests) of one that is
	// gone and to act.
	takeover = 90 * time.Second
	// pausedFor is H6's pause: more than the lease (6 s in tests) and the fence against late
	// reports (10 s) together.
	pausedFor = 17 * time.Second
	// drained is the controller's grace period in config/: at SIGTERM it is gone by then.
	drained = 60 * time.Second
	// tokenLife is how long a token of a run's secret works where a test waits for its end; an hour
	// at GitHub.
	tokenLife = 30 * time.Second

	// soakLimit bounds one short soak, its end included; soakRestarts is what it restarts at least,
	// on a busy machine.
	soakLimit    = 5 * time.Minute
	soakRestarts = 3
	// mitigationRate and mitigationRestart make a missing mitigation show within seconds;
	// mitigationLimit gives it up.
	mitigationRate    = 40
	mitigationRestart = 3 * time.Second
	mitigationLimit   = 2 * time.Minute

	// slowDrain is the -drain-wait of H3: enough to look at a receiver that drains, and what is
	// shipped.
	slowDrain = 15 * time.Second
	// signalled is how long a call goes on after SIGTERM.
	signalled = time.Second
	// controlPlaneOutage is H7's: longer than a lease (6 s in tests) and its fence; 10 minutes in
	// docs/reliability.md.
	controlPlaneOutage = 9 * time.Second
)

// ruleLimit returns the time within which a changed Secret takes effect (B8, S31) and a refused
// PipelineRun has a failed check (C4): 30 s. The deadline of make test is longer, because its
// tests run while the machine does other work.
func ruleLimit() time.Duration {
	if testing.Short() {
		return soon
	}
	return 30 * time.Second
}
