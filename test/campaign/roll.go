// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"context"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/test/installation"
)

// roll replaces the receivers one after the other as a Deployment does, while the first delivery
// of each repository is sent again all the time. It is skipped while something is disturbed: an
// API server reconnects to a restarted etcd some seconds after etcd is ready.
func (s *stage) roll(ctx context.Context) {
	s.rolling.Store(true) // no other disturbance begins
	defer s.rolling.Store(false)
	if !s.isCalm(ctx) {
		s.tally.add("rolling restarts left out as something was still down", 1)
		return
	}
	end := s.tally.begin(rolling)
	begin := time.Now()
	sending, enough := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { s.redeliverAll(sending) })
	complete := true
	for _, target := range []string{receiver0, receiver1} {
		complete = complete && s.replace(s.processes[target], s.parts[target])
	}
	enough()
	beside.Wait()
	end()
	if complete {
		s.tally.add("rolling restarts", 1)
		s.tally.rolled(begin, time.Now())
	}
}

const (
	// redeliverEvery is the time between two deliveries in a rolling restart.
	redeliverEvery = 50 * time.Millisecond
	// propagation is when the front hears that an endpoint is gone, less than the receivers'
	// -drain-wait of a second.
	propagation = 500 * time.Millisecond
)

// redeliverAll sends deliveries that are recorded already.
func (s *stage) redeliverAll(ctx context.Context) {
	tick := time.NewTicker(redeliverEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.tally.add("deliveries during rolling restarts", 1)
		r := s.repositories[n%len(s.repositories)]
		r.send(context.WithoutCancel(ctx), s.front.server.URL, r.first)
	}
}

// replace ends a receiver by SIGTERM and starts it again; the front learns of both late.
func (s *stage) replace(process *installation.Process, p *part) bool {
	<-p.free
	defer func() { p.free <- struct{}{} }()
	ctx, cancel := context.WithTimeout(context.Background(), ready)
	defer cancel()
	if p.Terminate() != nil {
		return false
	}
	within(ctx, propagation)
	s.front.unlist(process.URL)
	defer s.front.list(process.URL) // also if it takes too long: it is an endpoint whenever it is ready
	return p.Wait(ctx) == nil && p.Start(ctx) == nil
}

// isCalm reports whether nothing is disturbed, and every receiver is ready. After a kill of etcd,
// an API server may delay a receiver's caches for longer than a start may take.
func (s *stage) isCalm(ctx context.Context) bool {
	for _, p := range s.parts {
		if len(p.free) == 0 {
			return false
		}
	}
	for _, target := range []string{receiver0, receiver1} {
		if installation.Answers(ctx, s.processes[target].URL+"/ready") != nil {
			return false
		}
	}
	return true
}
