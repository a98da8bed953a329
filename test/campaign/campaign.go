// SPDX-License-Identifier: Apache-2.0

// Package campaign sends random deliveries of a GitHub and a GitLab to the built receivers and
// controllers while it kills, pauses and cuts off processes and has the API server and the Git
// services answer wrongly, and looks all the time whether the invariants of docs/codes.md hold.
// What it does, and when, follows from a seed; how fast the processes are does not.
package campaign

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
	"github.com/plumbline-ci/plumbline/test/invariants"
)

// Options of Run.
type Options struct {
	// Cluster is wired, and has the CustomResourceDefinitions of config/ already. It is the
	// campaign's own: its API server and its etcd are killed.
	Cluster  *cluster.Cluster
	Programs installation.Programs
	Seed     uint64
	// Acts are what is done, a part of the seed's schedule or all of it.
	Acts []Act
	// Limits are the first concurrency_limits of the repositories, in the order in which they are
	// made; 0 is none, and nil what a campaign has.
	Limits []int
	// Patience is invariants.History's; 0 is what a campaign needs.
	Patience time.Duration
	// Settle is how long everything has afterwards to become true.
	Settle time.Duration
}

// Report is what was done and found.
type Report struct {
	Seed uint64
	// Table counts what was done, a line each.
	Table string
	// Settled is how long it took after the last disturbance until every invariant held.
	Settled time.Duration
	// Broken are the invariants that do not hold, each with what happened to its subject.
	Broken []Finding
	// Unmade are the kinds of calls at which processes are disturbed and that no process has made.
	Unmade []string
	counts map[string]int
}

// Finding is a violation and its timeline.
type Finding struct {
	invariants.Violation
	Timeline []string
}

func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "campaign with SEED=%d\n%s", r.Seed, r.Table)
	for _, kind := range r.Unmade {
		fmt.Fprintf(&b, "no process made the call: %s\n", kind)
	}
	if len(r.Broken) == 0 {
		fmt.Fprintf(&b, "every invariant holds, %v after the last disturbance\n", r.Settled.Round(time.Second))
		return b.String()
	}
	const most = 5 // what is wrong is often wrong with many events
	told, by := 0, map[string]bool{}
	for _, found := range r.Broken {
		if told >= most && by[found.Invariant] {
			continue
		}
		told++
		by[found.Invariant] = true
		fmt.Fprintf(&b, "SEED=%d breaks %v\n  %s\n", r.Seed, found.Violation, strings.Join(found.Timeline, "\n  "))
	}
	if more := len(r.Broken) - told; more > 0 {
		fmt.Fprintf(&b, "… and %d more\n", more)
	}
	return b.String()
}

// Run installs Plumbline, performs the acts and removes everything. An error means that the
// campaign itself failed; broken invariants are in the report.
func Run(ctx context.Context, o Options) (Report, error) {
	s, err := open(ctx, o)
	if err != nil {
		return Report{}, errors.Join(err, s.close())
	}
	report, err := s.play(ctx)
	return report, errors.Join(err, s.close())
}

// play performs the schedule until its end, or until an invariant is broken permanently.
func (s *stage) play(ctx context.Context) (Report, error) {
	report := Report{Seed: s.options.Seed}
	playing, stop := context.WithCancel(ctx)
	defer stop()
	c := &checker{stage: s, stop: stop}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		c.watch(playing)
	}()
	s.tally.began()
	s.perform(playing, s.options.Acts)
	stop()
	<-watched
	if err := s.restore(ctx); err != nil {
		report.Broken = c.findings()
		return report, fmt.Errorf("bringing everything up again: %w", err)
	}
	settled := time.Now()
	err := c.settle(ctx)
	err = errors.Join(err, s.remembered())
	most, given := s.history.Most()
	s.tally.add("PipelineRuns of approved commits", c.allowed)
	s.tally.add("runs ended by newer ones", c.superseded)
	s.tally.add("PipelineRuns pruned", len(c.pruned))
	s.tally.add("slots given", given)
	s.tally.add("PipelineRuns told to end", s.history.Ended())
	s.tally.add("PipelineRuns at once of a Repository with a limit, at most", most)
	report.Table, report.counts, report.Settled = s.tally.table(), maps.Clone(s.tally.counts), time.Since(settled)
	report.Broken, report.Unmade = slices.Concat(c.findings(), s.died()), s.unmade()
	return report, err
}
