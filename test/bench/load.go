// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/plumbline-ci/plumbline/test/forge"
	"github.com/plumbline-ci/plumbline/test/installation"
)

const (
	// bareFor is how long the bare client goes on at most: its times vary less.
	bareFor = 20 * time.Second
	// drain is how long the final checks are waited for once the load is over, as a multiple of the
	// load.
	drain = 2
	// farAway is how much longer each answer of the Git service takes in the sections with a
	// distance.
	farAway = 150 * time.Millisecond
)

// load delivers pushes at a fixed rate, after the bare client has created as many PipelineRuns a
// second on its own.
func load(rate float64, installations int, distance time.Duration) play {
	return func(ctx context.Context, r *room, out *Section) error {
		s, err := r.open(ctx, setting{installations: installations})
		if err != nil {
			return err
		}
		idle, err := s.bareLoad(ctx, rate, count(rate, min(r.during, bareFor)))
		if err != nil {
			return fmt.Errorf("the bare client: %w", err)
		}
		if distance > 0 {
			s.forge.Inject(forge.Fault{Do: forge.Delay(distance)})
		}
		return s.pushes(ctx, r.during, rate, out, idle)
	}
}

// pushes delivers at a rate and adds all figures of it.
func (s *stage) pushes(ctx context.Context, during time.Duration, rate float64, out *Section, idle bareFigures) error {
	events := s.prepare(count(rate, during), s.repos...)
	before, err := s.use()
	if err != nil {
		return err
	}
	installation.OpenLoop(ctx, each(rate), len(events), func(i int, due time.Time) { s.push(ctx, events[i], due) })
	late := s.finish(ctx, drain*during+time.Minute, events)
	seen := s.seen(events, time.Now())
	seen.add(out, idle)
	if seen.accepted == 0 {
		return fmt.Errorf("no push was accepted: %w", late)
	}
	if late == nil {
		late = s.settled(ctx)
	}
	if err := s.perEvent(out, before, seen.accepted, idle.cpu); err != nil {
		return err
	}
	if err := s.memory(out); err != nil {
		return err
	}
	if late != nil {
		return fmt.Errorf("the times are too short: %w", late)
	}
	return nil
}

// count is how many arrivals there are, one at least.
func count(rate float64, during time.Duration) int { return max(1, int(rate*during.Seconds())) }

// seen are the times of some events. Those from a push begin when it was due.
type seen struct {
	sent, accepted      int
	accept, run, check  []time.Duration
	report              []time.Duration // from the end of the PipelineRun until the final check
	withoutRun, noFinal int
}

// seen reads the events. What has not happened counts as if it happened now.
func (s *stage) seen(events []*event, now time.Time) seen {
	s.observer.mu.Lock()
	defer s.observer.mu.Unlock()
	out := seen{sent: len(events)}
	or := func(at time.Time) time.Time {
		if at.IsZero() {
			return now
		}
		return at
	}
	for _, e := range events {
		if e.code != http.StatusAccepted {
			continue
		}
		out.accepted++
		out.accept = append(out.accept, e.answered.Sub(e.due))
		out.run = append(out.run, or(e.created).Sub(e.due))
		out.check = append(out.check, or(e.check).Sub(e.due))
		if e.created.IsZero() {
			out.withoutRun++
		}
		if e.final.IsZero() {
			out.noFinal++
		}
		if !e.ended.IsZero() {
			out.report = append(out.report, max(0, or(e.final).Sub(e.ended))) // the watch may be late
		}
	}
	return out
}

func (o seen) add(out *Section, idle bareFigures) {
	out.times("event → PipelineRun", o.run, idle.run)
	out.times("event → first check", o.check, nil)
	out.times("accept", o.accept, idle.create)
	out.times("run finished → final check", o.report, nil)
	out.add("pushes sent", "", float64(o.sent), 0)
	out.add("pushes not accepted", "", float64(o.sent-o.accepted), 0)
	out.add("pushes without a PipelineRun at the end", "", float64(o.withoutRun), 0)
	out.add("pushes without a final check at the end", "", float64(o.noFinal), 0)
}

// memory adds what the processes have.
func (s *stage) memory(out *Section) error {
	for _, p := range s.processes() {
		bytes, err := p.Memory(installation.Resident)
		if err != nil {
			return err
		}
		out.add("RSS of the "+p.name, "MiB", mebibytes(bytes), 0)
	}
	return nil
}

// sustained keeps so many pushes under way that there is always something to do, and counts the
// PipelineRuns.
func sustained(installations int) play {
	const underWay = 64
	return func(ctx context.Context, r *room, out *Section) error {
		s, err := r.open(ctx, setting{installations: installations})
		if err != nil {
			return err
		}
		var rates [2]float64
		for i, writers := range []int{1, 32} {
			if rates[i], err = s.bareSustained(ctx, writers, r.during/4); err != nil {
				return err
			}
			out.add(fmt.Sprintf("bare PipelineRuns/s, %d writers", writers), "/s", rates[i], 0)
		}
		var events []*event
		next := make(chan *event)
		begin := time.Now()
		end := begin.Add(r.during)
		go func() {
			defer close(next)
			for time.Now().Before(end) {
				for _, e := range s.prepare(len(s.repos), s.repos...) {
					events = append(events, e)
					next <- e
				}
			}
		}()
		closedLoop(ctx, underWay, r.during, func(ctx context.Context) bool {
			e, more := <-next
			if !more {
				return false
			}
			if s.push(ctx, e, time.Now()) != http.StatusAccepted {
				return true
			}
			select {
			case <-e.made:
			case <-ctx.Done():
			}
			return true
		})
		for range next { // the rest is not delivered
		}
		out.add("sustained PipelineRuns/s", "/s", s.rate(events, begin.Add(r.during/5), end), rates[0])
		return nil
	}
}

// rate is how many PipelineRuns a second were seen between two times.
func (s *stage) rate(events []*event, from, to time.Time) float64 {
	s.observer.mu.Lock()
	defer s.observer.mu.Unlock()
	n := 0
	for _, e := range events {
		if e.created.After(from) && e.created.Before(to) {
			n++
		}
	}
	return float64(n) / to.Sub(from).Seconds()
}
