// SPDX-License-Identifier: Apache-2.0

package steplogs

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// acquire takes a slot; it returns false if ctx ends before there is one.
func (s *Step) acquire(ctx context.Context, namespace string) bool {
	for {
		s.mu.Lock()
		total := 0
		for _, n := range s.busy {
			total += n
		}
		free := total < maxReads && s.busy[namespace] < maxOfNamespace
		if free {
			s.busy[namespace]++
		}
		s.mu.Unlock()
		if free || !sleep(ctx, pollSlot) {
			return free
		}
	}
}

func (s *Step) release(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[namespace]--; s.busy[namespace] == 0 {
		delete(s.busy, namespace)
	}
}

// sleep returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err() == nil
}

// take returns the log of a run whose read has ended, nil if it goes on.
func (s *Step) take(event, run string) *v1alpha1.RunLog {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.reads[event][run]
	if r == nil {
		return nil
	}
	select {
	case <-r.done:
	default:
		r.left = true
		return nil
	}
	if delete(s.reads[event], run); len(s.reads[event]) == 0 {
		delete(s.reads, event)
	}
	return &r.log
}

// Forget ends the reads of an event that this process does not work on any more.
func (s *Step) Forget(event string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.reads[event] {
		r.cancel()
	}
	delete(s.reads, event)
}

// Clear ends all reads: another process may lead now.
func (s *Step) Clear() {
	s.mu.Lock()
	events := slices.Collect(maps.Keys(s.reads))
	s.mu.Unlock()
	for _, event := range events {
		s.Forget(event)
	}
}
