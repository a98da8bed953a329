// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
)

// slots is a semaphore that is waited for until a context ends.
type slots chan struct{}

func (s slots) take(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, slotWait)
	defer cancel()
	select {
	case s <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s slots) free() { <-s }

var (
	errTooLarge = errors.New("the body is larger than 25 MiB")
	errNoSlot   = errors.New("too many large deliveries at once")
)

// read returns the whole body. A body over smallBodyBytes holds a large-body slot until release is called; a sender
// has to have sent that much before it can hold one.
func (h *Handler) read(ctx context.Context, w http.ResponseWriter, r *http.Request) (body []byte, release func(), err error) {
	release = func() {}
	if r.ContentLength > MaxBodyBytes {
		return nil, release, errTooLarge
	}
	limited := http.MaxBytesReader(w, r.Body, MaxBodyBytes)
	var buffer bytes.Buffer
	if _, err := io.CopyN(&buffer, limited, smallBodyBytes); err != nil {
		if errors.Is(err, io.EOF) {
			return buffer.Bytes(), release, nil
		}
		return nil, release, readError(err)
	}
	if !h.large.take(ctx) {
		return nil, release, errNoSlot
	}
	if r.ContentLength > 0 {
		buffer.Grow(int(r.ContentLength) - buffer.Len() + bytes.MinRead)
	}
	if _, err := io.Copy(&buffer, limited); err != nil {
		h.large.free()
		return nil, release, readError(err)
	}
	return buffer.Bytes(), h.large.free, nil
}

func readError(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return errTooLarge
	}
	return err
}

func unread(err error) answer {
	switch {
	case errors.Is(err, errTooLarge):
		return rejected(http.StatusRequestEntityTooLarge, "TooLarge", err.Error())
	case errors.Is(err, errNoSlot):
		return unavailable(err.Error(), nil)
	}
	return rejected(http.StatusBadRequest, "BodyIncomplete", "the body could not be read to its end")
}
