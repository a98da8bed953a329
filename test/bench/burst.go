// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

const (
	// burstSize is how many pushes come at once.
	burstSize = 500
	// burstOver is how long the end of the burst is waited for: the whole benchmark has to end.
	burstOver = 3 * time.Minute
	// deliverers is how many of them are on the wire at once: more than a receiver handles of one
	// namespace.
	deliverers = 32
	// slowAnswer makes a Git service so slow that 500 events wait for minutes, and quick enough
	// that no call times out.
	slowAnswer = 5 * time.Second
)

// burst measures an installation at 1/s alone, and then beside another that gets 500 pushes at
// once.
func burst(ctx context.Context, r *room, out *Section) error {
	s, err := r.open(ctx, setting{installations: 2})
	if err != nil {
		return err
	}
	flooded, other := s.repos[0], s.repos[1]
	steady := func(during time.Duration) ([]*event, error) {
		events := s.prepare(count(1, during), other)
		installation.OpenLoop(ctx, each(1), len(events), func(i int, due time.Time) { s.push(ctx, events[i], due) })
		return events, s.finish(ctx, drain*during+time.Minute, events)
	}
	alone, err := steady(r.during / 2)
	if err != nil {
		return err
	}
	flood := s.prepare(burstSize, flooded)
	var flooding sync.WaitGroup
	begin := time.Now()
	flooding.Go(func() { s.deliverAll(ctx, flood) })
	beside, err := steady(r.during)
	flooding.Wait()
	if err != nil {
		return err
	}
	err = s.finish(ctx, burstOver, flood)
	now := time.Now()
	quiet, loud, all := s.seen(alone, now), s.seen(beside, now), s.seen(flood, now)
	out.times("the other's event → PipelineRun, alone", quiet.run, nil)
	out.times("the other's event → PipelineRun, beside the burst", loud.run, nil)
	out.times("the other's event → first check, alone", quiet.check, nil)
	out.times("the other's event → first check, beside the burst", loud.check, nil)
	out.times("the burst's event → PipelineRun", all.run, nil)
	out.add("the burst is over after", "s", now.Sub(begin).Seconds(), 0)
	out.add("pushes of the burst without a final check", "", float64(all.noFinal), 0)
	return err
}

// deliverAll delivers all as fast as the receiver takes them; what it refuses is delivered again.
func (s *stage) deliverAll(ctx context.Context, events []*event) {
	var delivering errgroup.Group
	delivering.SetLimit(deliverers)
	due := time.Now()
	for _, e := range events {
		delivering.Go(func() error {
			for s.push(ctx, e, due) != http.StatusAccepted && installation.Until(ctx, time.Now().Add(pollEvery)) {
			}
			return nil
		})
	}
	_ = delivering.Wait() // none fails
}

// waiting measures by how much the processes grow when 500 events of one installation wait.
func waiting(ctx context.Context, r *room, out *Section) error {
	s, err := r.open(ctx, setting{installations: 2})
	if err != nil {
		return err
	}
	slow := s.repos[0]
	some := s.prepare(burstSize/10, s.repos...) // the heap is in use when it is looked at first
	s.deliverAll(ctx, some)
	if err := s.finish(ctx, ready, some); err != nil {
		return err
	}
	before, most := map[string]int64{}, map[string]int64{}
	for _, p := range s.processes() {
		if before[p.name], err = p.Memory(installation.Resident); err != nil {
			return err
		}
	}
	s.forge.Inject(forge.Fault{
		Match: func(q *http.Request) bool { return strings.Contains(q.URL.Path, "/"+slow+"/") }, Do: forge.Delay(slowAnswer),
	})
	s.deliverAll(ctx, s.prepare(burstSize, slow))
	for end := time.Now().Add(r.during); time.Now().Before(end) && installation.Until(ctx, time.Now().Add(time.Second)); {
		for _, p := range s.processes() {
			now, err := p.Memory(installation.Resident)
			if err != nil {
				return err
			}
			most[p.name] = max(most[p.name], now)
		}
	}
	for _, p := range s.processes() {
		out.add("RSS of the "+p.name+" before", "MiB", mebibytes(before[p.name]), 0)
		out.add("RSS of the "+p.name+" grew by", "MiB", mebibytes(most[p.name]-before[p.name]), 0)
	}
	return ctx.Err()
}
