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
	os.Exit(cluster.Suite{Name: "campaign", Limit: 15 * time.Minute, Wired: true, Prepare: prepare}.Run(m))
}

func prepare(ctx context.Context, c *cluster.Cluster, dir string) error {
	if err := installation.Define(ctx, c); err != nil {
		return err
	}
	programs, err := installation.Build(ctx, dir)
	shared = Options{
		Cluster: c, Programs: programs, Seed: seed, Acts: Schedule(seed, 25*time.Second), Settle: 4 * time.Minute,
	}
	return err
}

// The short form of `make campaign`: processes are killed, paused, cut off and answered wrongly.
// No delivery is lost, none runs twice and no check is wrong (I-1 to I-5, I-7 to I-10).
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

// The short form of `make limits` (I-6): processes are killed and the limits change. The number of
// runs never exceeds the limit, runs start in order, every run starts or is cancelled, and nothing
// is deleted before its result was accepted.
func TestLimitsHold(t *testing.T) {
	if testing.Short() {
		t.Skip("runs in make test-all")
	}
	o := OfLimits()
	o.Cluster, o.Programs, o.Seed, o.Settle, o.Acts = shared.Cluster, shared.Programs, seed, shared.Settle,
		Limits(seed, 40*time.Second, 40)
	report, err := Run(t.Context(), o)
	t.Log(report)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Broken) > 0 {
		t.Errorf("%d invariants are broken", len(report.Broken))
	}
}

// The schedule of limits has the given number of deliveries, changes every limit, and kills
// controllers at each kind of call.
func TestLimitScheduleFollowsFromSeed(t *testing.T) {
	acts := Limits(seed, 10*time.Minute, 200)
	if !slices.Equal(acts, Limits(seed, 10*time.Minute, 200)) {
		t.Error("two schedules of one seed differ")
	}
	delivered, targets, calls := 0, map[string]bool{}, map[string]bool{}
	for _, act := range acts {
		switch {
		case act.Target == "":
			delivered++
		case act.Kind == limiting:
			targets[act.Target] = true
		default:
			at := takesTurn(act, deadlyCalls())
			calls[at.String()+at.when] = true
		}
	}
	if all := len(deadlyCalls()); delivered != 200 || len(targets) != len(limitables()) || len(calls) != all {
		t.Errorf("%d deliveries, limits changed of %v, killed at %d calls; want 200, of all, and %d", delivered, targets,
			len(calls), all)
	}
}

// A seed has one schedule, which is in the order of time and has acts of every kind. Another seed
// has another schedule.
func TestScheduleFollowsFromSeed(t *testing.T) {
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
	if len(kinds) != 18+8 || len(targets) != 14 {
		t.Errorf("%d kinds %v with %d targets %v, want 18 kinds of deliveries and 8 of disturbances; 14 targets", len(kinds),
			kinds, len(targets), targets)
	}
}

// A part of a schedule has no long waits, and is not faster than the whole: an act starts as long
// after the one before as it did, and after the end of all earlier acts not sooner than a rolling
// restart needs.
func TestPartialScheduleHasNoLongWaits(t *testing.T) {
	second := func(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
	got := Compact([]Act{{At: second(60)}, {At: second(61), Lasts: second(5)}, {At: second(62)}, {At: second(67)},
		{At: second(90)}, {At: second(93)}})
	for i, want := range []float64{3, 4, 5, 10, 13, 16} {
		if got[i].At != second(want) {
			t.Errorf("act %d is at %v, want %vs", i, got[i].At, want)
		}
	}
}
