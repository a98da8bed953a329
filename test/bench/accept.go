// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"time"

	"github.com/plumbline-ci/plumbline/test/installation"
)

// The steps of acceptMost: the first rate, what each next one is multiplied by, and the latency at
// which a rate is too much.
const (
	acceptFirst  = 20
	acceptFactor = 1.5
	acceptMax    = time.Second
	acceptRates  = 12 // up to 1,700/s
)

// acceptMost raises the rate of deliveries until one is refused or takes longer than a second at
// p99. No controller runs: what is accepted stays in etcd.
func acceptMost(ctx context.Context, r *room, out *Section) error {
	s, err := r.open(ctx, setting{installations: many})
	if err != nil {
		return err
	}
	if err := s.controller.Kill(); err != nil {
		return err
	}
	during := max(r.during/acceptRates, 2*time.Second)
	best, rate := seen{}, float64(acceptFirst)
	reached := 0.0
	for range acceptRates {
		events := s.prepare(count(rate, during), s.repos...)
		installation.OpenLoop(ctx, each(rate), len(events), func(i int, due time.Time) { s.push(ctx, events[i], due) })
		got := s.seen(events, time.Now())
		if got.accepted < got.sent || installation.Percentile(got.accept, 99) > acceptMax || ctx.Err() != nil {
			break
		}
		best, reached = got, rate
		rate *= acceptFactor
	}
	out.add("highest accept rate", "/s", reached, 0)
	out.times("accept at that rate", best.accept, nil)
	return ctx.Err()
}
