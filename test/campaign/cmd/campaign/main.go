// SPDX-License-Identifier: Apache-2.0

// Command campaign plays the campaign of a seed on a cluster of its own and fails when an invariant is broken. Then it can look for
// a smaller schedule that breaks it, too.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/test/campaign"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
)

func main() {
	seed := flag.Uint64("seed", 1, "what the schedule follows from")
	minutes := flag.Float64("minutes", 5, "for how long deliveries are sent")
	limits := flag.Int("limits", 0, "if not 0: instead of a campaign, so many deliveries while limits change and controllers are killed at each kind of call")
	only := flag.String("acts", "", "numbers of the schedule's `acts` that alone are done, with commas between; \"\" does all")
	settle := flag.Duration("settle", 25*time.Minute, "for how long everything may take afterwards")
	shrink := flag.Float64("shrink-minutes", 0, "for how long smaller schedules are tried when an invariant is broken")
	installation.Main("campaign", func(ctx context.Context) error {
		p := player{seed: *seed, minutes: *minutes, limits: *limits, shrink: inMinutes(*shrink)}
		acts, err := choose(p.schedule(), *only)
		if err != nil {
			return err
		}
		return p.run(ctx, acts, *settle)
	})
}

func inMinutes(n float64) time.Duration { return time.Duration(n * float64(time.Minute)) }

// choose returns the acts with the numbers, all if there are none.
func choose(acts []campaign.Act, only string) ([]campaign.Act, error) {
	numbers, err := installation.Numbers[int]("-acts", only)
	if err != nil || only == "" {
		return acts, err
	}
	var chosen []campaign.Act
	for _, n := range numbers {
		if n > len(acts) {
			return nil, fmt.Errorf("%d is no act of the schedule, which has %d", n, len(acts))
		}
		chosen = append(chosen, acts[n-1])
	}
	slices.SortFunc(chosen, func(a, b campaign.Act) int { return a.N - b.N })
	return campaign.Compact(chosen), nil
}

type player struct {
	seed     uint64
	minutes  float64
	limits   int
	shrink   time.Duration
	programs installation.Programs // once they are built
}

// schedule is that of a campaign, or the one in which limits change.
func (p *player) schedule() []campaign.Act {
	if p.limits > 0 {
		return campaign.Limits(p.seed, inMinutes(p.minutes), p.limits)
	}
	return campaign.Schedule(p.seed, inMinutes(p.minutes))
}

// options are those of the schedule.
func (p *player) options() campaign.Options {
	if p.limits > 0 {
		return campaign.OfLimits()
	}
	return campaign.Options{}
}

var errBroken = errors.New("an invariant is broken")

// run plays the acts, and smaller schedules if they break something.
func (p *player) run(ctx context.Context, acts []campaign.Act, settle time.Duration) error {
	report, err := p.play(ctx, acts, settle, true)
	if errors.Is(err, errBroken) && p.shrink > 0 {
		p.shrinks(ctx, acts, report.Broken[0].Invariant)
	}
	return err
}

// play plays acts on a new cluster. With keeps a broken invariant is an error, so that the logs and the programs stay.
func (p *player) play(ctx context.Context, acts []campaign.Act, settle time.Duration, keeps bool) (campaign.Report, error) {
	alone := installation.Play{Name: "campaign", Programs: p.programs, Wired: true}
	if keeps {
		alone.Progress = os.Stdout
	}
	var report campaign.Report
	err := alone.Run(ctx, func(ctx context.Context, c *cluster.Cluster, built installation.Programs) (err error) {
		p.programs = built
		o := p.options()
		o.Cluster, o.Programs, o.Seed, o.Acts, o.Settle = c, built, p.seed, acts, settle
		report, err = campaign.Run(ctx, o)
		fmt.Println(report)
		if err == nil && keeps && len(report.Broken) > 0 {
			return errBroken
		}
		if whole := len(acts) == len(p.schedule()); err == nil && keeps && whole {
			return p.enough(report)
		}
		return err
	})
	return report, err
}

// enough is an error if a whole schedule has done less than it is for.
func (p *player) enough(report campaign.Report) error {
	lacks := report.Unmade
	if p.limits == 0 {
		lacks = report.Lacks(inMinutes(p.minutes))
	}
	if len(lacks) > 0 {
		return fmt.Errorf("every invariant holds, but too little was done:\n%s", strings.Join(lacks, "\n"))
	}
	return nil
}

// shrunken is how long everything has to become true after a smaller schedule: what is broken for good is so by then, and the time
// is for replays.
const shrunken = time.Minute

// shrinks prints the smallest schedule found that breaks the invariant.
func (p *player) shrinks(ctx context.Context, acts []campaign.Act, invariant string) {
	ctx, cancel := context.WithTimeout(ctx, p.shrink)
	defer cancel()
	smallest := campaign.Shrink(ctx, acts, func(ctx context.Context, part []campaign.Act) bool {
		fmt.Printf("shrinking: %d acts of %d\n", len(part), len(acts))
		report, err := p.play(ctx, campaign.Compact(part), shrunken, false)
		return err == nil && report.Breaks(invariant)
	})
	if len(smallest) == len(acts) {
		fmt.Printf("no smaller schedule has broken %s again within %v\n", invariant, p.shrink)
		return
	}
	var lines, numbers []string
	for _, act := range campaign.Compact(smallest) {
		lines, numbers = append(lines, act.String()), append(numbers, strconv.Itoa(act.N))
	}
	again := "make campaign"
	if p.limits > 0 {
		again = fmt.Sprintf("make limits EVENTS=%d", p.limits)
	}
	fmt.Printf("%s is broken by %d acts of %d:\n%s\n%s SEED=%d MINUTES=%v ACTS=%s\n",
		invariant, len(smallest), len(acts), strings.Join(lines, "\n"), again, p.seed, p.minutes, strings.Join(numbers, ","))
}
