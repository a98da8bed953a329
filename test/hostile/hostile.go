// SPDX-License-Identifier: Apache-2.0

// Package hostile plays the attacks that docs/security.md is about against the built receiver and
// controller, each below the memory limit of its container, while a well-behaved tenant pushes
// twice a second, and looks at what the tenant notices.
package hostile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/test/cluster"
	"github.com/plumbline-ci/plumbline/test/installation"
)

// Options of Run; all but Again are required.
type Options struct {
	// Cluster has the CustomResourceDefinitions of config/ already.
	Cluster  *cluster.Cluster
	Programs installation.Programs
	// Attacks are played at once.
	Attacks []Attack
	// Quiet is how long the tenant is alone, Attacked how long the attacks last.
	Quiet, Attacked time.Duration
	// Again has the tenant send a delivery again that was not taken, as people do at GitHub: with
	// all attacks at once the machine is what is short. It is counted.
	Again bool
}

// Attack is one finding, performed for as long as its context lives.
type Attack struct {
	// Finding is its number on docs/reliability.md.
	Finding int
	Name    string
	// prepare makes what the attacker owns, before the tenant pushes.
	prepare func(ctx context.Context, s *stage) error
	// play attacks until ctx ends, and counts what it sends and what becomes of it.
	play func(ctx context.Context, s *stage, sent *tally)
}

// Report is the result of a play.
type Report struct {
	// Quiet and Attacked are the tenant's pushes of the two times.
	Quiet, Attacked Pushes
	// Sent says what the attackers sent, Ended which processes ended, each with its reason.
	Sent  string
	Ended []string
	// Limit is the kind of the processes' memory limits.
	Limit                string
	Receiver, Controller Memory
	// Etcd is by how much more than in the same time of quiet etcd grew, in bytes: what was written
	// and not compacted.
	Etcd int64
}

// Memory is what a process had, in bytes.
type Memory struct{ Idle, Peak, Limit int64 }

// Run makes its own stage, performs the attacks there and removes it. An error means that the play
// itself failed; what the product did wrong is in the report.
func Run(ctx context.Context, o Options) (Report, error) {
	s, err := open(ctx, o)
	if err != nil {
		return Report{}, errors.Join(err, s.close())
	}
	report, err := s.play(ctx, o)
	return report, errors.Join(err, s.close())
}

func (s *stage) play(ctx context.Context, o Options) (report Report, err error) {
	for _, attack := range o.Attacks {
		if attack.prepare == nil {
			continue
		}
		if err := attack.prepare(ctx, s); err != nil {
			return report, fmt.Errorf("preparing %s: %w", attack.Name, err)
		}
	}
	if err := s.warm(ctx); err != nil {
		return report, fmt.Errorf("the tenant's first push: %w", err)
	}
	w := watch(s)
	defer w.stop()
	if report.Receiver.Idle, report.Controller.Idle, err = w.idle(); err != nil {
		return report, err
	}
	begin := w.written()
	quiet := s.pushes(ctx, o.Quiet)
	middle := w.written()
	end := s.attack(ctx, o.Attacks)
	attacked := s.pushes(ctx, o.Attacked)
	report.Sent = end()
	report.Etcd = w.written() - middle - (middle-begin)*int64(o.Attacked)/int64(o.Quiet)
	report.Quiet, report.Attacked = quiet.result(), attacked.result()
	report.Ended = w.end(&report.Receiver, &report.Controller)
	report.Limit = s.receiver.Limit.Kind
	return report, nil
}

// attack begins all attacks; end ends them and says what was sent.
func (s *stage) attack(ctx context.Context, attacks []Attack) (end func() string) {
	ctx, cancel := context.WithCancel(ctx)
	var playing sync.WaitGroup
	sent := make([]tally, len(attacks))
	for i, attack := range attacks {
		playing.Go(func() { attack.play(ctx, s, &sent[i]) })
	}
	return func() string {
		cancel()
		playing.Wait()
		var lines []string
		for i, attack := range attacks {
			lines = append(lines, fmt.Sprintf("%d %s: %s", attack.Finding, attack.Name, &sent[i]))
		}
		return strings.Join(lines, "\n")
	}
}
