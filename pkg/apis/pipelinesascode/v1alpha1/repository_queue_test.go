// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "testing"

// A limit of 0 or less is none, wherever it comes from; what a Repository sets itself wins.
func TestConcurrency(t *testing.T) {
	limit := func(n int) *RepositorySpec { return &RepositorySpec{ConcurrencyLimit: &n} }
	for name, test := range map[string]struct {
		own, global *RepositorySpec
		want        int
	}{
		"nobody says":               {&RepositorySpec{}, nil, 0},
		"neither says":              {&RepositorySpec{}, &RepositorySpec{}, 0},
		"its own":                   {limit(2), limit(7), 2},
		"the global one":            {&RepositorySpec{}, limit(7), 7},
		"0 of an old object":        {limit(0), limit(7), 0},
		"less than 0":               {limit(-1), nil, 0},
		"0 of the global one":       {&RepositorySpec{}, limit(0), 0},
		"more than a status can be": {limit(1 << 30), nil, MaxConcurrency},
	} {
		if got := test.own.Concurrency(test.global); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// Each installation writes its own queue; the numbers are the sums.
func TestQueuesOfTwoInstallations(t *testing.T) {
	s := &RepositoryStatus{}
	s.SetQueue("two", &Queue{Installation: "two", Queued: 3, Slots: []Slot{{Run: "a", Event: "e"}}})
	s.SetQueue("one", &Queue{
		Installation: "one", Queued: 1, Slots: []Slot{{Run: "b", Event: "e"}, {Run: "c", Event: "e"}},
	})
	if *s.Running != 3 || *s.Queued != 4 || len(s.Slots()) != 3 || s.Queues[0].Installation != "one" {
		t.Errorf("%d running, %d queued: %+v", *s.Running, *s.Queued, s.Queues)
	}
	if !s.HasSlot("one", "e", "b") || s.HasSlot("two", "e", "b") || s.HasSlot("one", "f", "b") ||
		s.HasSlot("three", "e", "b") {
		t.Error("a slot is another's")
	}
	s.SetQueue("one", &Queue{Installation: "one"})
	if *s.Running != 1 || *s.Queued != 3 {
		t.Errorf("then %d running, %d queued", *s.Running, *s.Queued)
	}
	s.SetQueue("one", nil)
	s.SetQueue("two", nil)
	if s.Running != nil || s.Queued != nil || s.Queues != nil {
		t.Errorf("in the end %+v", s)
	}
}
