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
	room := NewRoom(20)
	release, free := room.Take("team", 8)
	if !free {
		t.Fatal("an empty room is not free")
	}
	if _, free := room.Take("other", 8); !free {
		t.Error("another owner has no room")
	}
	if _, free := room.Take("third", 5); free {
		t.Error("5 of the 4 bytes that are left were given")
	}
	if _, free := room.Take("third", 4); !free {
		t.Error("what is left was not given")
	}
	release()
	if _, free := room.Take("team", 8); !free {
		t.Error("what was given back is not free")
	}
}

// S6: what one owner holds leaves the others half of the room.
func TestOneOwnerGetsHalfOfTheRoom(t *testing.T) {
	room := NewRoom(20)
	release, _ := room.Take("team", 6)
	if _, free := room.Take("team", 5); free {
		t.Error("one owner got more than half")
	}
	if _, free := room.Take("team", 4); !free {
		t.Error("an owner did not get its half")
	}
	if _, free := room.Take("other", 10); !free {
		t.Error("another owner did not get its half")
	}
	release()
	if _, free := room.Take("team", 6); !free {
		t.Error("an owner did not get back what it gave")
	}
}
