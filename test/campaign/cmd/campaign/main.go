// SPDX-License-Identifier: Apache-2.0

// Command campaign plays the campaign of a seed on a cluster of its own and fails when an invariant is broken.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/plumbline-ci/plumbline/test/campaign"
	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
)

func main() {
	seed := flag.Uint64("seed", 1, "what the schedule follows from")
	minutes := flag.Float64("minutes", 5, "for how long deliveries are sent")
	settle := flag.Duration("settle", 10*time.Minute, "for how long everything may take afterwards")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *seed, time.Duration(*minutes*float64(time.Minute)), *settle); err != nil {
		fmt.Fprintln(os.Stderr, "campaign:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, seed uint64, long, settle time.Duration) error {
	alone := installation.Play{Name: "campaign", Progress: os.Stdout}
	return alone.Run(ctx, func(ctx context.Context, c *cluster.Cluster, built installation.Programs) error {
		report, err := campaign.Run(ctx, campaign.Options{Cluster: c, Programs: built, Seed: seed, Long: long, Settle: settle})
		fmt.Println(report)
		if err == nil && len(report.Broken) > 0 {
			err = errors.New("an invariant is broken")
		}
		return err
	})
}
