// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"fmt"
	"testing"
	"time"
)

// step makes one of the next possible steps.
func (s *simulation) step(number int) {
	for _, w := range s.giving {
		w.advance(time.Duration(s.random.IntN(3000)) * time.Millisecond)
	}
	s.giving[1].clock.SetTime(s.giving[0].clock.Now())
	switch s.random.IntN(12) {
	case 0:
		if s.faults && s.started < 40 {
			s.receive()
		}
	case 1, 2, 3:
		s.give()
	case 4, 5:
		s.decide()
	case 6, 7:
		s.land()
	case 8, 9:
		s.end()
	case 10:
		s.observe()
	case 11:
		s.disturb()
	}
	r := s.repository()
	for run, event := range s.running {
		if !r.Status.HasSlot(systemNS, event, run) {
			s.Fatalf("step %d: %s runs without a slot: %+v", number, run, r.Status.Slots())
		}
	}
}

// disturb changes the limit, or deletes an event without a pending create: its PipelineRuns go on.
func (s *simulation) disturb() {
	if !s.faults {
		return
	}
	if s.random.IntN(3) > 0 {
		r, limit := s.repository(), 1+s.random.IntN(4)
		r.Spec.ConcurrencyLimit = &limit
		s.store(r)
		return
	}
	if e, _ := s.any(creatable); e != nil && s.lucky(3) {
		for _, run := range e.Status.Runs {
			if live := s.pipelineRun(run.Name); live != nil && !live.IsDone() {
				return // it would never end
			}
		}
		delete(s.events, e.Name)
	}
}

// Processes lag, are killed, and make their calls in any order. Every unfinished PipelineRun has a
// slot, and the slots never exceed the limit. In the end all runs are finished and all slots are
// released (I-6).
func TestSlotsAreNeitherLostNorTakenTwice(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			s := newSimulation(t, seed)
			for number := range 600 {
				s.step(number)
			}
			s.faults = false
			for number := range 20000 {
				if s.step(number); s.finished() {
					return
				}
			}
			s.Errorf("not over: slots %+v, %d events", s.repository().Status.Queues, s.started)
		})
	}
}

// finished reports whether every event is settled or deleted, and every slot released.
func (s *simulation) finished() bool {
	for _, e := range s.events {
		if !e.Settled() {
			return false
		}
	}
	return len(s.repository().Status.Slots()) == 0
}
