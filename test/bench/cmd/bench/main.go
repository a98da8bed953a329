// SPDX-License-Identifier: Apache-2.0

// Command bench measures Plumbline on a real control plane, prints each section when it has ended,
// and stores all figures as JSON. With -page it writes the figures of such a file into
// docs/performance.md and measures nothing; with -profiles it profiles the processes under a load
// in place of measuring them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/plumbline-ci/plumbline/test/bench"
	"github.com/plumbline-ci/plumbline/test/installation"
)

func main() {
	var c command
	flag.Float64Var(&c.seconds, "seconds", 60, "how long each load goes on")
	flag.StringVar(&c.rates, "rates", "1,5,20", "pushes a second of the loads")
	flag.StringVar(&c.repositories, "repositories", "100,1000,10000", "numbers of Repositories to measure with")
	flag.StringVar(&c.settled, "settled", "1000,100000", "numbers of settled events to measure with")
	flag.StringVar(&c.runs, "runs", "", "numbers of PipelineRuns of one event to measure the costs of, e.g. 1,10,100,200")
	flag.DurationVar(&c.slow.Git, "git-delay", 0,
		"how long the Git service takes for each answer in the section runs; 200ms is like github.com")
	flag.DurationVar(&c.slow.Create, "create-delay", 0,
		"how much longer the API server takes for each PipelineRun there, as with policies that look at it")
	flag.StringVar(&c.only, "only", ".", "regular expression of the sections to measure, e.g. ^load-one")
	flag.StringVar(&c.json, "json", "",
		"file that the figures are stored in; those of sections that are not measured now stay")
	flag.StringVar(&c.page, "page", "", "file whose table is written anew with the figures of -json; nothing is measured")
	flag.StringVar(&c.profiles, "profiles", "",
		"directory for CPU, heap and mutex profiles under a load of the first rate; nothing is measured")
	installation.Main("bench", c.run)
}

// command is the flags.
type command struct {
	seconds                                                        float64
	rates, repositories, settled, runs, only, json, page, profiles string
	slow                                                           bench.Delays
}

func (c *command) run(ctx context.Context) error {
	if c.page != "" {
		return c.rewrite()
	}
	o := bench.Options{During: time.Duration(c.seconds * float64(time.Second)), To: os.Stdout, Slow: c.slow}
	var errs [5]error
	o.Rates, errs[0] = installation.Numbers[float64]("-rates", c.rates)
	o.Repositories, errs[1] = installation.Numbers[int]("-repositories", c.repositories)
	o.Settled, errs[2] = installation.Numbers[int]("-settled", c.settled)
	o.Runs, errs[4] = installation.Numbers[int]("-runs", c.runs)
	o.Only, errs[3] = regexp.Compile(c.only)
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	if c.profiles != "" {
		return bench.Profile(ctx, o, c.profiles)
	}
	report, err := bench.Run(ctx, o)
	if report != nil && c.json != "" {
		err = errors.Join(err, c.store(report))
	}
	return err
}

// store writes the figures, with those of other sections that the file has.
func (c *command) store(report *bench.Report) error {
	if before, err := bench.Read(c.json); err == nil {
		report.Keep(before)
	}
	if err := os.MkdirAll(filepath.Dir(c.json), 0o750); err != nil {
		return err
	}
	return report.Write(c.json)
}

// rewrite writes the page anew.
func (c *command) rewrite() error {
	report, err := bench.Read(c.json)
	if err != nil {
		return err
	}
	page, err := os.ReadFile(c.page)
	if err != nil {
		return err
	}
	text, err := report.Page(string(page))
	if err != nil {
		return fmt.Errorf("%s: %w", c.page, err)
	}
	return os.WriteFile(c.page, []byte(text), 0o600)
}
