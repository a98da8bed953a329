// SPDX-License-Identifier: Apache-2.0

// Command soak runs the soak on a cluster of its own and fails when a delivery did.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
	"github.com/plumbline-ci/plumbline/test/soak"
)

func main() {
	minutes := flag.Float64("minutes", 30, "how long deliveries are sent")
	without := flag.String("without", "",
		"the mitigation to leave out: readiness, preStop, drain-wait, both-waits or connection-close")
	installation.Main("soak", func(ctx context.Context) error { return run(ctx, *minutes, *without) })
}

func run(ctx context.Context, minutes float64, without string) error {
	settings, err := soak.Shipped()
	if err != nil {
		return err
	}
	settings.Duration = time.Duration(minutes * float64(time.Minute))
	command := installation.Play{Name: "soak", Progress: os.Stdout}
	return command.Run(ctx, func(ctx context.Context, c *cluster.Cluster, built installation.Programs) error {
		options := soak.Options{Cluster: c, Programs: built, Settings: settings}
		if err := leaveOut(ctx, &options, without); err != nil {
			return err
		}
		fmt.Printf("soaking for %v: %+v\n", settings.Duration, options.Settings)
		report, err := soak.Run(ctx, options)
		fmt.Println(report)
		if err == nil && (report.Failed() > 0 || report.Lost > 0) {
			err = errors.New("deliveries failed")
		}
		return err
	})
}

func leaveOut(ctx context.Context, o *soak.Options, without string) error {
	if without == "" {
		return nil
	}
	leave, known := soak.Mitigations()[without]
	if !known {
		return fmt.Errorf("there is no mitigation %q", without)
	}
	if without == "connection-close" {
		if err := soak.BuildUnclosed(ctx, o.Programs.Receiver); err != nil {
			return err
		}
	}
	leave(o)
	return nil
}
