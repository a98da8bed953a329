// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

const (
	// burstSize is how many pushes come at once (issue 12).
	burstSize = 500
	// deliverers is how many of them are on the wire at once: more than a receiver handles of one namespace.
	deliverers = 32
	// slowAnswer makes a Git service so slow that 500 events wait for minutes, and quick enough that nobody gives a call up.
	slowAnswer = 5 * time.Second
)

// burst measures an installation at 1/s alone, and then beside another that gets 500 pushes at once.
func burst(ctx context.Context, r *room, out *Section) error {
	s, err := r.open(ctx, setting{installations: 2})
	if err != nil {
		return err
	}
	flooded, other := s.repos[0], s.repos[1]
	steady := func(during time.Duration) ([]*event, error) {
		events := s.prepare(count(1, during), other)
		openLoop(ctx, 1, len(events), func(i int, due time.Time) { s.push(ctx, events[i], due) })
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
	err = s.finish(ctx, drain*r.during+time.Minute, flood)
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
	var next atomic.Int64
	var delivering sync.WaitGroup
	defer delivering.Wait()
	due := time.Now()
	for range deliverers {
		delivering.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(events)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				for s.push(ctx, events[i], due) != http.StatusAccepted {
					if !reach(ctx, time.Now().Add(pollEvery)) {
						return
					}
				}
			}
		})
	}
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
	processes := map[string]*installation.Process{"receiver": s.receiver, "controller": s.controller}
	before := map[string]int64{}
	for name, p := range processes {
		if before[name], err = p.Memory(installation.Resident); err != nil {
			return err
		}
	}
	s.forge.Inject(forge.Fault{Match: func(q *http.Request) bool { return strings.Contains(q.URL.Path, "/"+slow+"/") }, Do: forge.Delay(slowAnswer)})
	s.deliverAll(ctx, s.prepare(burstSize, slow))
	most := map[string]int64{}
	for end := time.Now().Add(r.during); time.Now().Before(end) && reach(ctx, time.Now().Add(time.Second)); {
		for name, p := range processes {
			now, err := p.Memory(installation.Resident)
			if err != nil {
				return err
			}
			most[name] = max(most[name], now)
		}
	}
	for _, name := range []string{"controller", "receiver"} {
		out.add("RSS of the "+name+" before", "MiB", float64(before[name])/(1<<20), 0)
		out.add("RSS of the "+name+" grew by", "MiB", float64(most[name]-before[name])/(1<<20), 0)
	}
	return ctx.Err()
}
