// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/plumbline-ci/plumbline/pkg/receiver/connlimit"
	"github.com/plumbline-ci/plumbline/pkg/receiver/fairness"
)

// semaphore limits how many bodies are in memory.
type semaphore chan struct{}

// acquire waits for a slot, at most fairness.InFlightWait. While it waits, it calls waiting every
// contendedEvery.
func (s semaphore) acquire(ctx context.Context, waiting func()) bool {
	ctx, cancel := context.WithTimeout(ctx, fairness.InFlightWait)
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

func (s semaphore) release() { <-s }

var (
	errTooLarge = errors.New("the body is larger than 25 MiB")
	errTooSlow  = errors.New("the body arrives too slowly")
	errNoSlot   = errors.New("too many deliveries at once: send this one again in a moment")
)

// read returns the whole body. The body has a slot until release is called; only the first call
// releases it. While a body arrives it has no slot, unless it is over smallBodyBytes: after so many
// bytes it waits for one of the slots for large bodies.
func (h *Handler) read(
	ctx context.Context, w http.ResponseWriter, r *http.Request,
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
	releaseLarge := none
	if !whole {
		if !h.largeBodies.acquire(ctx, in.connection.EvictSlowest) {
			return nil, none, errNoSlot
		}
		releaseLarge = h.largeBodies.release
		if err := in.rest(); err != nil {
			releaseLarge()
			return nil, none, err
		}
	}
	if !in.connection.BodyComplete() {
		err = connlimit.ErrEvicted
	} else if !h.bodies.acquire(ctx, none) {
		err = errNoSlot
	}
	if err != nil {
		releaseLarge()
		return nil, none, err
	}
	in.connection.SlotTaken()
	return in.body, sync.OnceFunc(func() { releaseLarge(); h.bodies.release() }), nil
}

// incoming is a body while it arrives.
type incoming struct {
	from       io.Reader
	length     int // as declared, or -1
	body       []byte
	connection *connlimit.Connection
	deadline   func(time.Time) error
	// began is when the wait for the headers started, piece when the wait for the current piece of
	// the body did, and has how many bytes of that piece are here.
	began, piece time.Time
	has          int
	// slotted reports whether the body has a slot for large ones.
	slotted bool
}

func newIncoming(w http.ResponseWriter, r *http.Request) *incoming {
	connection := connlimit.Of(r.Context())
	began := connection.RequestStarted()
	return &incoming{
		from: http.MaxBytesReader(w, r.Body, MaxBodyBytes), length: int(r.ContentLength), connection: connection,
		deadline: http.NewResponseController(w).SetReadDeadline, began: began, piece: began,
	}
}

// rest reads what is over smallBodyBytes. The wait for a slot does not count as the sender's time.
func (in *incoming) rest() error {
	in.connection.LargeSlotTaken()
	in.slotted, in.piece, in.has = true, time.Now(), 0
	if in.length > 0 {
		in.body = slices.Grow(in.body, in.length+1-len(in.body)) // one more, to see the end
	}
	_, err := in.upTo(MaxBodyBytes + 1)
	return err
}

// upTo reads until there are n bytes. Whole reports that the body ended before.
func (in *incoming) upTo(n int) (whole bool, err error) {
	for len(in.body) < n {
		if err := in.grow(n); err != nil {
			return false, err
		}
		in.pace()
		got, err := in.from.Read(in.body[len(in.body):min(cap(in.body), n)])
		in.count(got)
		if errors.Is(err, io.EOF) {
			_ = in.deadline(time.Time{}) // a request that came through no connection has no deadline
			return true, nil
		}
		if err != nil {
			return false, in.failed(err)
		}
	}
	return false, nil
}

// firstSize fits most bodies, except for pushes of many commits.
const firstSize = 16 << 10

// grow allocates memory for more bytes, but not for a length that is only declared: declaring it
// costs a sender nothing.
func (in *incoming) grow(n int) error {
	if len(in.body) < cap(in.body) {
		return nil
	}
	size := min(max(firstSize, 2*cap(in.body)), n)
	if in.length >= 0 {
		size = min(size, in.length+1) // one more, to see the end
	}
	if !in.slotted {
		if err := in.connection.Reserve(size); err != nil {
			return err
		}
	}
	grown := make([]byte, len(in.body), max(size, len(in.body)+1))
	copy(grown, in.body)
	in.body = grown
	return nil
}

// pace sets the deadline of the current piece, and of the whole body.
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
		in.connection.Received(got)
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
	case in.connection.Evicted():
		return connlimit.ErrEvicted
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errTooSlow
	}
	return err
}

// unread answers a request whose body could not be read.
func unread(err error) *answer {
	switch {
	case errors.Is(err, errTooLarge):
		return rejected(http.StatusRequestEntityTooLarge, reasonTooLarge, err.Error())
	case errors.Is(err, errTooSlow):
		return rejected(http.StatusRequestTimeout, reasonTooSlow, err.Error())
	case errors.Is(err, errNoSlot), errors.Is(err, connlimit.ErrEvicted):
		return unavailable(err.Error(), nil)
	}
	return rejected(http.StatusBadRequest, reasonBodyIncomplete, "the body could not be read to its end")
}
