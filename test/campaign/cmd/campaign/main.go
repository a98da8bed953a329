// SPDX-License-Identifier: Apache-2.0

// Command campaign plays the campaign of a seed on a cluster of its own and fails when an invariant
// is broken.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
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
	only := flag.String("acts", "",
		"numbers of the schedule's `acts` that alone are done, with commas between; \"\" does all")
	settle := flag.Duration("settle", 25*time.Minute, "for how long everything may take afterwards")
	installation.Main("campaign", func(ctx context.Context) error {
		p := player{seed: *seed, minutes: *minutes, limits: *limits}
		acts, err := choose(p.schedule(), *only)
		if err != nil {
			return err
		}
		return p.play(ctx, acts, *settle)
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
	seed    uint64
	minutes float64
	limits  int
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

// play plays acts on a new cluster. A broken invariant is an error, so that the logs and the
// programs stay.
func (p *player) play(ctx context.Context, acts []campaign.Act, settle time.Duration) error {
	alone := installation.Play{Name: "campaign", Progress: os.Stdout, Wired: true}
	return alone.Run(ctx, func(ctx context.Context, c *cluster.Cluster, built installation.Programs) error {
		o := p.options()
		o.Cluster, o.Programs, o.Seed, o.Acts, o.Settle = c, built, p.seed, acts, settle
		report, err := campaign.Run(ctx, o)
		fmt.Println(report)
		switch {
		case err != nil:
			return err
		case len(report.Broken) > 0:
			return errBroken
		case len(acts) == len(p.schedule()):
			return p.enough(report)
		}
		return nil
	})
}

// enough returns an error if a whole schedule has done too little.
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
