// SPDX-License-Identifier: Apache-2.0

// Command hostile plays each attack for a minute, after a minute of quiet, and prints what a well-behaved tenant noticed. It
// fails if a push of the tenant was lost, a process ended, or the tenant waited more than three times as long.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/hostile"
	"github.com/plumbline-ci/plumbline/test/installation"
)

func main() {
	seconds := flag.Int("seconds", 60, "how long the tenant is alone, and then each attack lasts")
	only := flag.String("only", ".", "regular expression of the findings to play, e.g. ^(2|14)$")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, time.Duration(*seconds)*time.Second, *only); err != nil {
		fmt.Fprintf(os.Stderr, "\n✗ hostile: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, during time.Duration, only string) error {
	chosen, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	command := installation.Play{Name: "hostile", Progress: os.Stdout}
	return command.Run(ctx, func(ctx context.Context, c *cluster.Cluster, built installation.Programs) error {
		o := hostile.Options{Cluster: c, Programs: built, Quiet: during, Attacked: during}
		var err error
		for _, attack := range hostile.Attacks() {
			if chosen.MatchString(strconv.Itoa(attack.Finding)) {
				o.Attacks = []hostile.Attack{attack}
				err = errors.Join(err, play(ctx, o))
			}
		}
		return err
	})
}

func play(ctx context.Context, o hostile.Options) error {
	report, err := hostile.Run(ctx, o)
	if err != nil {
		return fmt.Errorf("the play of %s itself went wrong: %w", o.Attacks[0].Name, err)
	}
	fmt.Println(report)
	return errors.Join(report.Failed(), report.Slow())
}
