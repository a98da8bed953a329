// SPDX-License-Identifier: Apache-2.0

// Command hostile plays each attack for a minute, after a minute of quiet, and prints what a
// well-behaved tenant noticed. It fails if a push of the tenant was lost, a process ended, or the
// tenant waited more than three times as long.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/hostile"
	"github.com/plumbline-ci/plumbline/test/installation"
)

func main() {
	seconds := flag.Int("seconds", 60, "how long the tenant is alone, and then each attack lasts")
	only := flag.String("only", ".", "regular expression of the findings to play, e.g. ^(2|14)$")
	installation.Main("hostile", func(ctx context.Context) error {
		return run(ctx, time.Duration(*seconds)*time.Second, *only)
	})
}

func run(ctx context.Context, during time.Duration, only string) error {
	chosen, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	dir, err := os.MkdirTemp("", "plumbline-hostile-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	programs, err := installation.Build(ctx, dir)
	if err != nil {
		return err
	}
	for _, attack := range hostile.Attacks() {
		if chosen.MatchString(strconv.Itoa(attack.Finding)) {
			o := hostile.Options{Programs: programs, Quiet: during, Attacked: during, Attacks: []hostile.Attack{attack}}
			err = errors.Join(err, play(ctx, o))
		}
	}
	return err
}

// play performs an attack on its own cluster, so that its remains do not disturb the quiet before
// the next one.
func play(ctx context.Context, o hostile.Options) error {
	alone := installation.Play{Name: "hostile", Programs: o.Programs}
	return alone.Run(ctx, func(ctx context.Context, c *cluster.Cluster, _ installation.Programs) error {
		o.Cluster = c
		return judge(ctx, o)
	})
}

// judge performs an attack, prints the report and returns what is wrong.
func judge(ctx context.Context, o hostile.Options) error {
	report, err := hostile.Run(ctx, o)
	if err != nil {
		return fmt.Errorf("the play of %s itself went wrong: %w", o.Attacks[0].Name, err)
	}
	fmt.Println(report)
	return errors.Join(report.Failed(), report.Slow())
}
