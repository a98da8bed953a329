// SPDX-License-Identifier: Apache-2.0

// Command soak runs the soak of issue 4 on a cluster of its own and fails when a delivery did.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
	"github.com/plumbline-ci/plumbline/test/soak"
)

func main() {
	minutes := flag.Float64("minutes", 30, "how long deliveries are sent")
	without := flag.String("without", "", "the mitigation to leave out: readiness, preStop, drain-wait, both-waits or connection-close")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *minutes, *without); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, minutes float64, without string) error {
	settings, err := soak.Shipped()
	if err != nil {
		return err
	}
	settings.Duration = time.Duration(minutes * float64(time.Minute))
	dir, err := os.MkdirTemp("", "plumbline-soak-")
	if err != nil {
		return err
	}
	c, err := cluster.Start(ctx, cluster.Options{Dir: filepath.Join(dir, "cluster"), Progress: os.Stdout})
	if err != nil {
		return err
	}
	defer c.Stop()
	if err := installation.Define(ctx, c); err != nil {
		return err
	}
	programs, err := installation.Build(ctx, dir)
	if err != nil {
		return err
	}
	options := soak.Options{Cluster: c, Programs: programs, Settings: settings}
	if err := leaveOut(ctx, &options, without); err != nil {
		return err
	}
	fmt.Printf("soaking for %v: %+v\n", settings.Duration, options.Settings)
	report, err := soak.Run(ctx, options)
	fmt.Println(report)
	if err == nil && (report.Failed() > 0 || report.Lost > 0) {
		err = errors.New("deliveries failed")
	}
	if err != nil {
		return fmt.Errorf("%w; the logs are in %s", err, filepath.Join(dir, "cluster", "logs"))
	}
	c.Stop()
	return os.RemoveAll(dir)
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
