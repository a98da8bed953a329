// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"bytes"
	"testing"
	"time"
)

// until is until when the next byte may take, counted from now.
func (in *incoming) until() (left time.Duration) {
	in.deadline = func(at time.Time) error {
		left = time.Until(at).Round(100 * time.Millisecond)
		return nil
	}
	in.pace()
	return left
}

// Each piece of a body has its own time, and all of them together have theirs.
func TestPace(t *testing.T) {
	ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
	begun := func(began, piece time.Duration) *incoming {
		return &incoming{began: ago(began), piece: ago(piece), length: -1}
	}
	for _, c := range []struct {
		what string
		in   *incoming
		then func(*incoming)
		want time.Duration
	}{
		{"headers and the first piece share a time", begun(1500*time.Millisecond, 1500*time.Millisecond), nil, 500 * time.Millisecond},
		{"less than a piece gives no time", begun(time.Second, time.Second), func(in *incoming) { in.count(0) }, time.Second},
		{"a piece gives time for the next", begun(time.Second, time.Second), func(in *incoming) {
			in.body = make([]byte, 0, pieceBytes)
			in.count(pieceBytes - 1)
			in.count(1)
		}, pieceTime},
		{"the whole body has its time", begun(bodyTimeout-time.Second, 0), nil, time.Second},
		{"the wait for a slot is not the sender's", begun(3*time.Second, 3*time.Second), func(in *incoming) {
			in.from, in.deadline = new(bytes.Buffer), func(time.Time) error { return nil }
			_ = in.rest() // it is over at once
		}, pieceTime},
	} {
		if c.then != nil {
			c.then(c.in)
		}
		if got := c.in.until(); got != c.want {
			t.Errorf("%s: %v left, want %v", c.what, got, c.want)
		}
	}
}

// What is handled has no hurry: the deadline of the body is taken away with its end.
func TestTheEndOfABodyEndsItsHurry(t *testing.T) {
	last := time.Now()
	in := &incoming{from: bytes.NewBufferString("{}"), began: time.Now(), piece: time.Now(), length: 2}
	in.deadline = func(at time.Time) error { last = at; return nil }
	if whole, err := in.upTo(smallBodyBytes); err != nil || !whole || string(in.body) != "{}" || !last.IsZero() {
		t.Errorf("%t, %v, %q with the deadline %v, want it whole without one", whole, err, in.body, last)
	}
}
