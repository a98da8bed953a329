// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// seed is that of the short campaign: any one will do.
const seed = 13

var shared Options // set once before any test runs

func TestMain(m *testing.M) {
	os.Exit(cluster.Suite{Name: "campaign", Limit: 10 * time.Minute, Prepare: prepare}.Run(m))
}

func prepare(ctx context.Context, c *cluster.Cluster, dir string) error {
	if err := installation.Define(ctx, c); err != nil {
		return err
	}
	programs, err := installation.Build(ctx, dir)
	shared = Options{Cluster: c, Programs: programs, Seed: seed, Acts: Schedule(seed, 25*time.Second), Settle: 2 * time.Minute}
	return err
}

// The short form of `make campaign`: whatever was killed, paused, cut off and answered wrongly, no delivery is lost, none runs twice
// and no check says what is not so.
func TestEveryInvariantHolds(t *testing.T) {
	report, err := Run(t.Context(), shared)
	t.Log(report)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Broken) > 0 {
		t.Errorf("%d invariants are broken", len(report.Broken))
	}
}

// A seed has one schedule, which begins in the order of time and has something of every kind; another seed has another one.
func TestTheScheduleFollowsFromTheSeed(t *testing.T) {
	const long = 10 * time.Minute
	acts := Schedule(seed, long)
	if !slices.Equal(acts, Schedule(seed, long)) {
		t.Error("two schedules of one seed differ")
	}
	if slices.Equal(acts, Schedule(seed+1, long)) {
		t.Error("two seeds have one schedule")
	}
	kinds, targets := map[string]int{}, map[string]int{}
	for i, act := range acts {
		kinds[act.Kind]++
		targets[act.Target]++
		if i > 0 && act.At < acts[i-1].At || act.At > long {
			t.Fatalf("act %d is at %v, after one at %v", act.N, act.At, acts[max(0, i-1)].At)
		}
	}
	if len(kinds) != 17+7 || len(targets) != 12 {
		t.Errorf("%d kinds %v with %d targets %v, want 17 kinds of deliveries and 7 of disturbances; 12 targets", len(kinds), kinds, len(targets), targets)
	}
}
