// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"bytes"
	"testing"
	"time"
)

// until returns how long the next byte may take.
func (in *incoming) until() (left time.Duration) {
	in.deadline = func(at time.Time) error {
		left = time.Until(at).Round(100 * time.Millisecond)
		return nil
	}
	in.pace()
	return left
}

// Each piece of a body has its own deadline, and the whole body has one.
func TestEachPieceOfABodyHasADeadline(t *testing.T) {
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
		{"headers and the first piece share a deadline", begun(1500*time.Millisecond, 1500*time.Millisecond), nil,
			500 * time.Millisecond},
		{"less than a piece does not extend it", begun(time.Second, time.Second), func(in *incoming) { in.count(0) },
			time.Second},
		{"a complete piece extends it", begun(time.Second, time.Second), func(in *incoming) {
			in.body = make([]byte, 0, pieceBytes)
			in.count(pieceBytes - 1)
			in.count(1)
		}, pieceTime},
		{"the whole body has a deadline", begun(bodyTimeout-time.Second, 0), nil, time.Second},
		{"the wait for a slot does not count", begun(3*time.Second, 3*time.Second), func(in *incoming) {
			in.from, in.deadline = new(bytes.Buffer), func(time.Time) error { return nil }
			_ = in.rest() // returns at once
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

// The deadline of the body is removed when it is complete.
func TestCompleteBodyHasNoDeadline(t *testing.T) {
	last := time.Now()
	in := &incoming{from: bytes.NewBufferString("{}"), began: time.Now(), piece: time.Now(), length: 2}
	in.deadline = func(at time.Time) error { last = at; return nil }
	if whole, err := in.upTo(smallBodyBytes); err != nil || !whole || string(in.body) != "{}" || !last.IsZero() {
		t.Errorf("%t, %v, %q with the deadline %v, want it whole without one", whole, err, in.body, last)
	}
}
