// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"runtime/debug"
	"testing"
	"time"
)

func TestWeight(t *testing.T) {
	for text, want := range map[string]int{
		``: 0, `{}`: 16, `[{},{}]`: 34, `{"a":[1,2]}`: 19, `"{[,:"`: 0, `"\"{"`: 0, `"\\"{`: 16, `["a","b"]`: 2,
		`{"\u007b":"}"}`: 17,
	} {
		if got := Of([]byte(text)); got != want {
			t.Errorf("%s weighs %d, want %d", text, got, want)
		}
		var w Weight
		for i := range text { // however it comes in parts
			_, _ = w.Write([]byte(text[i : i+1]))
		}
		if w.Total() != want {
			t.Errorf("%s in parts weighs %d, want %d", text, w.Total(), want)
		}
	}
}

func TestLimitIsNineTenthsOfTheContainerLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	for _, c := range []struct {
		container, goMemLimit string
		want                  int64
	}{{"", "", before}, {"max", "", before}, {"-1", "", before}, {"1073741824", "1GiB", before},
		{"1073741820", "", 966367638}} {
		Limit(c.container, c.goMemLimit)
		if got := debug.SetMemoryLimit(-1); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.container, c.goMemLimit, got, c.want)
		}
	}
}

// A small request is served while large ones use all of their part.
func TestReleasedMemoryIsFree(t *testing.T) {
	full := 0
	room := NewBudget(time.Now, func() { full++ }, func(string, time.Duration) {})
	for _, owner := range []string{"one", "two", "three"} {
		if !room.Reserve("e", owner, MaxPart, 0) {
			t.Fatal("there is not enough memory for three large events")
		}
	}
	if room.Reserve("e", "four", small+1, 0) || room.Reserve("e", "four", 1, small) {
		t.Error("memory reserved for small events was given to a large one")
	}
	for range forSmall / small {
		if !room.Reserve("e", "four", small, 0) {
			t.Error("there is no room for one that needs little")
		}
	}
	if room.Reserve("e", "five", 1, 0) {
		t.Error("more was given than there is")
	}
	room.Release("e", "one", MaxPart)
	if !room.Reserve("e", "five", small, 0) {
		t.Error("what was given back is not free")
	}
	if full != 3 {
		t.Errorf("%d found no room, want 3", full)
	}
}

// S6: one owner leaves half of the memory to others.
func TestOwnerGetsAtMostHalf(t *testing.T) {
	room := NewBudget(time.Now, func() {}, func(string, time.Duration) {})
	if !room.Reserve("e", "team", MaxPart, 0) || !room.Reserve("e", "team", MaxEvent-MaxPart, MaxPart) {
		t.Error("an owner did not get its half")
	}
	if room.Reserve("e", "team", 1, 0) {
		t.Error("one owner got more than half")
	}
	if !room.Reserve("e", "other", MaxPart, 0) {
		t.Error("another owner has no room")
	}
	room.Release("e", "team", MaxPart)
	room.Release("e", "other", MaxPart)
	if !room.Reserve("e", "team", MaxPart, 0) {
		t.Error("an owner did not get back what it gave")
	}
}

func TestCollectRespectsGOGC(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	for _, c := range []struct {
		gogc string
		want int
	}{{"200", 100}, {"", garbage}} {
		Collect(c.gogc)
		if got := debug.SetGCPercent(100); got != c.want {
			t.Errorf("GOGC=%q: %d, want %d", c.gogc, got, c.want)
		}
	}
}
