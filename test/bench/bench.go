// SPDX-License-Identifier: Apache-2.0

// Package bench measures what users and operators notice of Plumbline, on a real control plane with
// fsync on, with the built receiver and controller, and beside it what a bare client needs for the
// same PipelineRuns. docs/performance.md says what each figure is. It asserts no speed; the machine
// decides that.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// Options of Run.
type Options struct {
	// During is how long each load goes on.
	During time.Duration
	// Rates are pushes a second.
	Rates []float64
	// Repositories and Settled are the sizes of the installations of the sections "size":
	// Repositories, and settled events.
	Repositories, Settled []int
	// Runs are numbers of PipelineRuns of one event: the section "runs" has what each costs, Slow
	// what makes that slower.
	Runs []int
	Slow Delays
	// Only chooses sections by their names; nil is all.
	Only *regexp.Regexp
	// To is where each section is printed when it has ended.
	To io.Writer
	// Programs are built when they are the zero value.
	Programs installation.Programs
}

// play measures one section and adds its figures.
type play func(ctx context.Context, r *room, out *Section) error

// room is what a section has: a control plane of its own, which is started when the section opens a
// stage.
type room struct {
	during   time.Duration
	programs installation.Programs
	cluster  *cluster.Cluster
	stage    *stage
}

// open makes the section's stage.
func (r *room) open(ctx context.Context, want setting) (*stage, error) {
	if err := r.cluster.Durable(ctx); err != nil {
		return nil, err
	}
	return r.openQuickly(ctx, want)
}

// openQuickly makes it with an etcd that does not wait for the disk. The section calls Durable.
func (r *room) openQuickly(ctx context.Context, want setting) (s *stage, err error) {
	r.stage, err = open(ctx, r.cluster, r.programs, want)
	return r.stage, err
}

// close ends what the section has started.
func (r *room) close() error {
	if r.stage == nil {
		return nil
	}
	return r.stage.close()
}

// part is a section before it is measured.
type part struct {
	name, title string
	play        play
	// alone needs no control plane.
	alone bool
}

// many is how many installations of the App stand for an organization with many.
const many = 50

func parts(o Options) []part {
	list := []part{
		{name: "plan", title: "planning 150 pipelines with path filters, files in memory", play: planning, alone: true},
	}
	for _, where := range []struct {
		name, title   string
		installations int
		distance      time.Duration
	}{
		{"one", "one installation", 1, 0},
		{"many", fmt.Sprintf("%d installations", many), many, 0},
		{"far", "one installation, each answer of the Git service 150 ms later", 1, farAway},
	} {
		for _, rate := range o.Rates {
			list = append(list, part{
				name: fmt.Sprintf("load-%s-%g", where.name, rate), title: fmt.Sprintf("%g pushes a second, %s", rate, where.title),
				play: load(rate, where.installations, where.distance),
			})
		}
	}
	list = append(list,
		part{name: "sustained-one", title: "as many PipelineRuns as it makes, one installation", play: sustained(1)},
		part{name: "sustained-many", title: fmt.Sprintf("as many PipelineRuns as it makes, %d installations", many),
			play: sustained(many)},
		part{name: "accept", title: "as many deliveries as a receiver accepts, no controller running", play: acceptMost},
		part{name: "burst", title: "500 pushes at once to one installation, beside another's at 1/s", play: burst},
		part{name: "waiting", title: "memory under 500 events that wait for a slow Git service", play: waiting},
	)
	if len(o.Runs) > 0 {
		list = append(list, part{
			name: "runs", title: "what an event costs, by the number of its PipelineRuns", play: costs(o.Runs, o.Slow),
		})
	}
	for _, n := range o.Repositories {
		list = append(list, part{
			name: fmt.Sprintf("size-repositories-%d", n), title: fmt.Sprintf("with %d Repositories", n), play: size(n, 0),
		})
	}
	for _, n := range o.Settled {
		list = append(list, part{
			name: fmt.Sprintf("size-settled-%d", n), title: fmt.Sprintf("with %d settled events", n), play: size(0, n),
		})
	}
	return list
}

// Run measures the chosen sections one after the other, each on a control plane of its own. A
// section that fails loses its own figures only; the error joins theirs.
func Run(ctx context.Context, o Options) (*Report, error) {
	dir, err := os.MkdirTemp("", "plumbline-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	report := &Report{Began: time.Now().UTC(), Seconds: o.During.Seconds()}
	if report.Machine, err = inspect(dir); err != nil {
		return nil, err
	}
	_, _ = fmt.Fprintln(o.To, report.Machine)
	chosen := slices.DeleteFunc(parts(o), func(p part) bool { return o.Only != nil && !o.Only.MatchString(p.name) })
	if len(chosen) == 0 {
		return report, fmt.Errorf("no section is called %v", o.Only)
	}
	needed := slices.ContainsFunc(chosen, func(p part) bool { return !p.alone })
	if needed && o.Programs == (installation.Programs{}) {
		if o.Programs, err = installation.Build(ctx, dir); err != nil {
			return nil, err
		}
	}
	for _, p := range chosen {
		if ctx.Err() != nil {
			return report, errors.Join(err, ctx.Err())
		}
		section, failed := p.measure(ctx, &room{during: o.During, programs: o.Programs})
		section.print(o.To)
		report.Sections = append(report.Sections, section)
		err = errors.Join(err, failed)
	}
	return report, err
}

// measure plays one section.
func (p part) measure(ctx context.Context, r *room) (Section, error) {
	out := Section{Name: p.name, Title: p.title}
	begin := time.Now()
	act := func(ctx context.Context, c *cluster.Cluster, _ installation.Programs) error {
		r.cluster = c
		return errors.Join(p.play(ctx, r, &out), r.close())
	}
	var err error
	if p.alone {
		err = p.play(ctx, r, &out)
	} else {
		err = installation.Play{Name: "bench", Programs: r.programs}.Run(ctx, act)
	}
	out.Took = time.Since(begin).Seconds()
	if err != nil {
		out.Failed = err.Error()
		err = fmt.Errorf("%s: %w", p.name, err)
	}
	return out, err
}
