// SPDX-License-Identifier: Apache-2.0

// Command oracle plays scenarios of a seed to Pipelines-as-Code itself and to Plumbline, and fails
// when they differ in anything that is not in the list of differences of package verdict.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
	"github.com/plumbline-ci/plumbline/test/oracle/play"
	"github.com/plumbline-ci/plumbline/test/oracle/scenario"
	"github.com/plumbline-ci/plumbline/test/oracle/verdict"
)

func main() {
	seed := flag.Uint64("seed", 1, "what the scenarios follow from")
	count := flag.Int("scenarios", 100, "how many are played")
	only := flag.String("only", "", "numbers of the `scenarios` that alone are played, with commas between")
	parallel := flag.Int("parallel", 6, "how many are played at once")
	show := flag.Bool("show", false, "print the scenarios and play nothing")
	update := flag.Bool("update", false, "write "+golden+", which the README's picture shows")
	installation.Main("oracle", func(ctx context.Context) error {
		scenarios, err := choose(*seed, *count, *only)
		if err != nil {
			return err
		}
		if *show {
			for _, s := range scenarios {
				fmt.Println(s)
			}
			return nil
		}
		return run(ctx, scenarios, scenario.DefaultsOf(*seed), *parallel, *update)
	})
}

func choose(seed uint64, count int, only string) (all []scenario.Scenario, err error) {
	numbers, err := installation.Numbers[int]("-only", only)
	if only == "" {
		for n := range count {
			numbers = append(numbers, n+1)
		}
	}
	for _, n := range numbers {
		all = append(all, scenario.Draw(seed, n))
	}
	return all, err
}

// run plays the scenarios. When something is wrong the logs stay, and the error says where.
func run(
	ctx context.Context, scenarios []scenario.Scenario, defaults scenario.Defaults, parallel int, update bool,
) error {
	begin := time.Now()
	stage, err := play.Open(ctx, defaults, os.Stdout)
	if err == nil {
		fmt.Printf("both run after %s\n", time.Since(begin).Round(time.Second))
		err = playAll(ctx, stage, scenarios, parallel)
	}
	if err == nil {
		err = refusedPatch(ctx, stage, update)
	}
	stage.Close(err != nil)
	if err != nil {
		return fmt.Errorf("%w\nthe logs are in %s", err, stage.Dir)
	}
	fmt.Printf("%d scenarios in %s: every difference is intended\n", len(scenarios),
		time.Since(begin).Round(time.Second))
	return nil
}

// golden is the check of Pipelines-as-Code that the README's picture shows, below the tree's root.
const golden = "test/oracle/testdata/check-refused-patch.md"

// refusedPatch compares what Pipelines-as-Code shows for a refused patch with the golden file.
func refusedPatch(ctx context.Context, stage *play.Stage, update bool) error {
	shown, err := stage.RefusedPatch(ctx)
	if err != nil {
		return fmt.Errorf("refusing the patch of a PipelineRun of Pipelines-as-Code: %w", err)
	}
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	file := filepath.Join(root, filepath.FromSlash(golden))
	if update {
		return os.WriteFile(file, []byte(shown), 0o600)
	}
	want, err := os.ReadFile(file) // #nosec G304 -- a constant
	if err == nil && string(want) != shown {
		err = fmt.Errorf("%s differs from what Pipelines-as-Code shows: run again with -update", file)
		fmt.Println(shown)
	}
	return err
}

// enough scenarios are those of which at least half have to run something.
const enough = 10

// tally is what all scenarios have come to.
type tally struct {
	mu     sync.Mutex
	meant  map[string]int
	broken []int
	// runs of Pipelines-as-Code there were, in so many scenarios.
	runs, ran int
	// played is how many scenarios there were.
	played int
}

func playAll(ctx context.Context, stage *play.Stage, scenarios []scenario.Scenario, parallel int) error {
	t := &tally{meant: map[string]int{}}
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, s := range scenarios {
		group.Go(func() error { return t.play(within, stage, s) })
	}
	err := group.Wait() // what was played until then is told in any case
	fmt.Printf("%d PipelineRuns of Pipelines-as-Code, in %d of %d scenarios. Differences that are meant:\n", t.runs, t.ran,
		t.played)
	for _, d := range verdict.Differences() {
		fmt.Printf("  %4d  %s\n", t.meant[d.Name], d.Name)
	}
	if err != nil {
		return err
	}
	if len(t.broken) > 0 {
		slices.Sort(t.broken)
		return fmt.Errorf("scenarios %v have differences that are in no list", t.broken)
	}
	if len(scenarios) >= enough && 2*t.ran < len(scenarios) {
		return fmt.Errorf("Pipelines-as-Code ran something in %d of %d scenarios only: that shows too little", t.ran,
			len(scenarios))
	}
	return nil
}

// play plays one scenario. What differs and is not meant is printed; what could not be played
// counts as that.
func (t *tally) play(ctx context.Context, stage *play.Stage, s scenario.Scenario) error {
	pac, ours, err := stage.Play(ctx, s, func(pac, ours []verdict.Side) bool {
		_, others := verdict.Judge(s, verdict.Compare(play.Application, pac, ours))
		return slices.ContainsFunc(others, func(d verdict.Difference) bool { return d.Act == len(pac)-1 })
	})
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	meant, others := verdict.Judge(s, verdict.Compare(play.Application, pac, ours))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.played++
	before := t.runs
	for _, side := range pac {
		t.runs += len(side.Runs)
	}
	if t.runs > before {
		t.ran++
	}
	for name := range maps.Keys(meant) {
		t.meant[name] += meant[name]
	}
	if err == nil && len(others) == 0 {
		return nil
	}
	t.broken = append(t.broken, s.N)
	fmt.Println(s)
	if err != nil {
		fmt.Println("  not played to its end:", err)
	}
	for _, d := range others {
		fmt.Println("  DIFFERS", d)
	}
	if len(ours) > 0 {
		for _, plan := range ours[len(ours)-1].Plans {
			fmt.Println("  Plumbline planned:", plan)
		}
	}
	return nil
}
