// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"runtime/debug"
	"testing"
)

func TestWeight(t *testing.T) {
	for text, want := range map[string]int{
		``: 0, `{}`: 16, `[{},{}]`: 34, `{"a":[1,2]}`: 19, `"{[,:"`: 0, `"\"{"`: 0, `"\\"{`: 16, `["a","b"]`: 2, `{"\u007b":"}"}`: 17,
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

func TestLimitIsNineTenthsOfTheContainers(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	for _, c := range []struct {
		container, goMemLimit string
		want                  int64
	}{{"", "", before}, {"max", "", before}, {"-1", "", before}, {"1073741824", "1GiB", before}, {"1073741820", "", 966367638}} {
		Limit(c.container, c.goMemLimit)
		if got := debug.SetMemoryLimit(-1); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.container, c.goMemLimit, got, c.want)
		}
	}
}

func TestRoomIsGivenBack(t *testing.T) {
	room := NewRoom(10)
	release, free := room.Take(8)
	if !free {
		t.Fatal("an empty room is not free")
	}
	if _, free := room.Take(3); free {
		t.Error("3 of the 2 bytes that are left were given")
	}
	if _, free := room.Take(2); !free {
		t.Error("what is left was not given")
	}
	release()
	if _, free := room.Take(8); !free {
		t.Error("what was given back is not free")
	}
}
