// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"

	"github.com/plumbline-ci/plumbline/test/soak"
)

// A7, I-9 in short: while three receivers are replaced one after the other, as in a rolling
// update, no delivery of an outside client fails, and each acknowledged one has its record. `make
// soak` is the long test.
func TestRollingRestartsLoseNoDelivery(t *testing.T) {
	t.Parallel()
	settings, err := soak.Short()
	if err != nil {
		t.Fatal(err)
	}
	report := soaked(t, soak.Options{Settings: settings})
	t.Log(report)
	if report.Failed() != report.Slow || report.Lost != 0 || report.Accepted == 0 {
		t.Errorf("want no delivery that a restart made fail, none lost, and some recorded: %v", report)
	}
	if report.Restarts < soakRestarts {
		t.Errorf("%d restarts, want at least %d", report.Restarts, soakRestarts)
	}
}

// Without any one of the mitigations the same restarts lose deliveries. So the soak would find a
// missing mitigation.
func TestEachMitigationIsNeeded(t *testing.T) {
	onlyInTestAll(t)
	t.Parallel()
	if err := soak.BuildUnclosed(t.Context(), shared.programs.Receiver); err != nil {
		t.Fatal(err)
	}
	all := soak.Mitigations()
	for _, without := range []string{"readiness", "drain-wait", "connection-close"} {
		t.Run(without, func(t *testing.T) {
			t.Parallel()
			settings, err := soak.Short()
			if err != nil {
				t.Fatal(err)
			}
			// More deliveries and restarts than in the soak, so that it fails sooner.
			settings.Rate, settings.RestartEvery = mitigationRate, mitigationRestart
			settings.Duration, settings.StopAtFailure = mitigationLimit, true
			o := soak.Options{Settings: settings, Programs: shared.programs}
			all[without](&o)
			report := soaked(t, o)
			t.Log(report)
			if report.Failed() == report.Slow {
				t.Errorf("no delivery failed without %s: %v", without, report)
			}
		})
	}
}

func soaked(t *testing.T, o soak.Options) soak.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soakLimit)
	defer cancel()
	o.Cluster, o.Key = shared.cluster, shared.key
	if o.Programs.Receiver == "" {
		o.Programs = shared.programs
	}
	report, err := soak.Run(ctx, o)
	if err != nil {
		t.Errorf("the soak itself went wrong: %v", err)
	}
	return report
}
