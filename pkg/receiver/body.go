// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/receiver/connlimit"
	"github.com/plumbline-ci/plumbline/pkg/receiver/fairness"
)

// slots is a semaphore that is waited for until a context ends.
type slots chan struct{}

// take waits for at most fairness.PlaceWait. Until it is done it calls waiting every
// contendedEvery.
func (s slots) take(ctx context.Context, waiting func()) bool {
	ctx, cancel := context.WithTimeout(ctx, fairness.PlaceWait)
	defer cancel()
	tick := time.NewTicker(contendedEvery)
	defer tick.Stop()
	for {
		select {
		case s <- struct{}{}:
			return true
		case <-tick.C:
			waiting()
		case <-ctx.Done():
			return false
		}
	}
}

func (s slots) free() { <-s }

var (
	errTooLarge = errors.New("the body is larger than 25 MiB")
	errTooSlow  = errors.New("the body arrives too slowly")
	errNoSlot   = errors.New("too many deliveries at once")
)

// read returns the whole body, with a slot that is held until release is called. Who sends a body
// has no slot before it is there, but for one over smallBodyBytes: it takes a slot for large ones
// when it has sent that much.
func (h *Handler) read(
	ctx context.Context,
	w http.ResponseWriter,
	r *http.Request,
) (body []byte, release func(), err error) {
	none := func() {}
	if r.ContentLength > MaxBodyBytes {
		return nil, none, errTooLarge
	}
	in := newIncoming(w, r)
	whole, err := in.upTo(smallBodyBytes)
	if err != nil {
		return nil, none, err
	}
	release = h.inFlight.free
	if !whole {
		if !h.large.take(ctx, in.connection.Displace) {
			return nil, none, errNoSlot
		}
		if err := in.rest(); err != nil {
			h.large.free()
			return nil, none, err
		}
		release = func() { h.large.free(); h.inFlight.free() }
	}
	if !in.connection.Handled() {
		err = connlimit.ErrDisplaced
	} else if !h.inFlight.take(ctx, none) {
		err = errNoSlot
	}
	if err != nil {
		if !whole {
			h.large.free()
		}
		return nil, none, err
	}
	in.connection.Slotted()
	return in.body, release, nil
}

// incoming is a body that arrives.
type incoming struct {
	from       io.Reader
	length     int // as declared; -1 when it is not
	body       []byte
	connection *connlimit.Connection
	deadline   func(time.Time) error
	// began is when the headers were waited for, piece when the current piece of the body was, and
	// has what came of it.
	began, piece time.Time
	has          int
	// slotted reports whether the body has a slot for large ones.
	slotted bool
}

func newIncoming(w http.ResponseWriter, r *http.Request) *incoming {
	connection := connlimit.Of(r.Context())
	began := connection.Begin()
	return &incoming{
		from: http.MaxBytesReader(w, r.Body, MaxBodyBytes), length: int(r.ContentLength), connection: connection,
		deadline: http.NewResponseController(w).SetReadDeadline, began: began, piece: began,
	}
}

// rest reads what is over smallBodyBytes. The time that a slot was waited for is not the sender's.
func (in *incoming) rest() error {
	in.connection.Enlarged()
	in.slotted, in.piece, in.has = true, time.Now(), 0
	if in.length > 0 {
		in.body = slices.Grow(in.body, in.length+1-len(in.body)) // one more, to see the end
	}
	_, err := in.upTo(MaxBodyBytes + 1)
	return err
}

// upTo reads until there are n bytes; whole tells that the body ended before.
func (in *incoming) upTo(n int) (whole bool, err error) {
	for len(in.body) < n {
		if err := in.grow(n); err != nil {
			return false, err
		}
		in.pace()
		room := in.body[len(in.body):min(cap(in.body), n)]
		got, err := in.from.Read(room)
		in.count(got)
		if errors.Is(err, io.EOF) {
			_ = in.deadline(time.Time{}) // what is handled has no hurry to send; without a connection there is no deadline
			return true, nil
		}
		if err != nil {
			return false, in.failed(err)
		}
	}
	return false, nil
}

// firstRoom is for most bodies that are no push of many commits.
const firstRoom = 16 << 10

// grow makes room for more, but not for what is only announced: that would cost a sender nothing.
func (in *incoming) grow(n int) error {
	if len(in.body) < cap(in.body) {
		return nil
	}
	room := min(max(firstRoom, 2*cap(in.body)), n)
	if in.length >= 0 {
		room = min(room, in.length+1) // one more, to see the end
	}
	if !in.slotted {
		if err := in.connection.Reserve(room); err != nil {
			return err
		}
	}
	grown := make([]byte, len(in.body), max(room, len(in.body)+1))
	copy(grown, in.body)
	in.body = grown
	return nil
}

// pace sets until when the current piece, and the whole body, may take.
func (in *incoming) pace() {
	until, last := in.piece.Add(pieceTime), in.began.Add(bodyTimeout)
	if last.Before(until) {
		until = last
	}
	_ = in.deadline(until) // a request that came through no connection has no deadline
}

func (in *incoming) count(got int) {
	in.body = in.body[:len(in.body)+got]
	if in.slotted {
		in.connection.Arrived(got)
	}
	if in.has += got; in.has >= pieceBytes {
		in.piece, in.has = time.Now(), 0
	}
}

func (in *incoming) failed(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return errTooLarge
	case in.connection.Displaced():
		return connlimit.ErrDisplaced
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errTooSlow
	}
	return err
}

func unread(err error) answer {
	switch {
	case errors.Is(err, errTooLarge):
		return rejected(http.StatusRequestEntityTooLarge, "TooLarge", err.Error())
	case errors.Is(err, errTooSlow):
		return rejected(http.StatusRequestTimeout, "TooSlow", err.Error())
	case errors.Is(err, errNoSlot), errors.Is(err, connlimit.ErrDisplaced):
		return unavailable(err.Error(), nil)
	}
	return rejected(http.StatusBadRequest, "BodyIncomplete", "the body could not be read to its end")
}
