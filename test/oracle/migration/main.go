// SPDX-License-Identifier: Apache-2.0

// Command migration moves namespaces from Pipelines-as-Code to Plumbline and back with plumb
// migrate, while commits are pushed, pull requests are opened, and users comment. It fails unless
// each event has run exactly once, and its check is true.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/test/installation"
	"github.com/plumbline-ci/plumbline/test/oracle/play"
)

// options are the flags.
type options struct {
	repositories     int
	pace, stay, down time.Duration
}

func main() {
	var o options
	flag.IntVar(&o.repositories, "repositories", 12, "how many Repositories move, four in each namespace")
	flag.DurationVar(&o.pace, "pace", 500*time.Millisecond, "the time between two events")
	flag.DurationVar(&o.stay, "stay", 2*time.Second, "the time between two moves of a namespace")
	flag.DurationVar(&o.down, "down", 15*time.Second, "how long a process that is killed does not run")
	installation.Main("migration", func(ctx context.Context) error { return o.run(ctx) })
}

func (o options) run(ctx context.Context) error {
	begin := time.Now()
	b, err := play.OpenBeside(ctx, o.repositories, os.Stdout)
	if err == nil {
		fmt.Printf("both run after %s\n", time.Since(begin).Round(time.Second))
		err = o.play(ctx, b)
	}
	b.Close(err != nil)
	if err != nil {
		return fmt.Errorf("%w\nthe logs are in %s", err, b.Dir)
	}
	return nil
}

// play moves all namespaces there and back, kills processes on the way there, and goes back after
// plumb migrate finish.
func (o options) play(ctx context.Context, b *play.Beside) error {
	for _, act := range []struct {
		name string
		do   func(context.Context, *play.Beside) error
	}{
		{"move there and back", o.thereAndBack},
		{"half have moved, and a receiver is killed", o.killReceiver},
		{"half have moved, and Pipelines-as-Code is killed", o.killPaC},
		{"finish, and go back", o.goBack},
	} {
		begin := time.Now()
		if err := act.do(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", act.name, err)
		}
		outcome, err := b.Await(ctx)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", act.name, outcome, err)
		}
		fmt.Printf("%s, %s: %s\n", act.name, time.Since(begin).Round(time.Second), outcome)
		if slices.Contains([]int{outcome.Ours, outcome.Theirs, outcome.OfPulls, outcome.OnLab}, 0) {
			return fmt.Errorf("%s: one of them has run nothing, or one kind of event is missing", act.name)
		}
	}
	return nil
}

// during does something while events happen.
func (o options) during(ctx context.Context, b *play.Beside, do func() error) error {
	happening, end := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.Events(happening, o.pace)
	}()
	err := do()
	end()
	<-done
	return err
}

func (o options) thereAndBack(ctx context.Context, b *play.Beside) error {
	return o.during(ctx, b, func() error {
		for _, way := range [][]string{{"namespace"}, {"namespace", "--back"}} {
			for _, namespace := range b.Namespaces() {
				if _, err := b.Migrate(ctx, append(way, namespace)...); err != nil {
					return err
				}
				rest(ctx, o.stay)
			}
		}
		return nil
	})
}

// half moves every other namespace.
func (o options) half(ctx context.Context, b *play.Beside) error {
	_, err := b.Migrate(ctx, append([]string{"namespace"}, half(b)...)...)
	return err
}

func half(b *play.Beside) (some []string) {
	for n, namespace := range b.Namespaces() {
		if n%2 == 0 {
			some = append(some, namespace)
		}
	}
	return some
}

// goBack ends the migration while events happen, and goes back: half of the namespaces first, and
// then the others.
func (o options) goBack(ctx context.Context, b *play.Beside) error {
	return o.during(ctx, b, func() error {
		if err := b.GoBackAfterFinish(ctx, half(b), func() { rest(ctx, o.stay) }); err != nil {
			return err
		}
		rest(ctx, o.stay)
		_, err := b.Migrate(ctx, "namespace", "--all", "--back")
		rest(ctx, o.stay)
		return err
	})
}

func (o options) killReceiver(ctx context.Context, b *play.Beside) error {
	return o.during(ctx, b, func() error {
		if err := o.half(ctx, b); err != nil {
			return err
		}
		rest(ctx, o.stay)
		return b.KillReceiver(ctx, o.down)
	})
}

func (o options) killPaC(ctx context.Context, b *play.Beside) error {
	if err := o.half(ctx, b); err != nil {
		return err
	}
	if err := b.KillController(); err != nil { // nothing happens yet, so nothing is in flight
		return err
	}
	return o.during(ctx, b, func() error { return b.StartController(ctx, o.down) })
}

// rest waits while events happen.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
