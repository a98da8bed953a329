// SPDX-License-Identifier: Apache-2.0

package turns

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTurns(t *testing.T) {
	t.Parallel()
	s := New(2)
	first, ok1 := s.Take("a")
	_, ok2 := s.Take("a")
	_, ok3 := s.Take("a")
	_, other := s.Take("b")
	if !ok1 || !ok2 || ok3 || !other {
		t.Errorf("turns: %v %v %v %v, want two of a and one of b", ok1, ok2, ok3, other)
	}
	first()
	if _, ok := s.Take("a"); !ok {
		t.Error("a turn that was given back must be free")
	}
}

// A key at which nobody is any more is forgotten: hosts come and go as long as the process lives.
func TestTaken(t *testing.T) {
	t.Parallel()
	s := New(2)
	first, _ := s.Take("a")
	second, _ := s.Take("a")
	third, _ := s.Take("b")
	taken := s.Taken()
	if diff := cmp.Diff(map[string]int{"a": 2, "b": 1}, taken); diff != "" {
		t.Error(diff)
	}
	clear(taken) // it is a copy
	first()
	third()
	if diff := cmp.Diff(map[string]int{"a": 1}, s.Taken()); diff != "" {
		t.Error(diff)
	}
	if second(); len(s.Taken()) != 0 {
		t.Errorf("nobody has a turn, and %v is remembered", s.Taken())
	}
}

// Many workers at once never have more turns than there are.
func TestNoMoreThanTheLimitAtOnce(t *testing.T) {
	t.Parallel()
	const limit = 3
	s := New(limit)
	var there atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range 200 {
				release, free := s.Take("a")
				if !free {
					continue
				}
				if now := there.Add(1); now > limit {
					t.Errorf("%d have a turn at once, want at most %d", now, limit)
				}
				there.Add(-1)
				release()
			}
		})
	}
	all.Wait()
	if len(s.Taken()) != 0 {
		t.Errorf("left: %v", s.Taken())
	}
}
