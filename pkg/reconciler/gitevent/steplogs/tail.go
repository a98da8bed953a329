// SPDX-License-Identifier: Apache-2.0

package steplogs

import (
	"errors"
	"fmt"
	"io"
)

const (
	// window is how many of the last bytes of a log are masked and searched for lines.
	window = 256 << 10
	// chunk is how many bytes are read at once.
	chunk = 32 << 10
	// maxRead bounds what is read of one log. The kubelet sends the whole of a line, and its limit
	// limitBytes counts from the first line that it sends, so the end of a log is found by reading.
	maxRead = 2 << 30
)

// errTooLong is returned for a log whose end is beyond maxRead.
var errTooLong = errors.New("the log is too long")

// tail reads to the end and returns the last bytes, at most window. It needs twice that memory.
func tail(log io.Reader, most int64) ([]byte, error) {
	last, read := make([]byte, 0, 2*window), int64(0)
	for {
		if len(last)+chunk > cap(last) {
			last = last[:copy(last, last[len(last)-window:])]
		}
		n, err := log.Read(last[len(last) : len(last)+chunk])
		last = last[:len(last)+n]
		if read += int64(n); read > most {
			return nil, errTooLong
		}
		switch {
		case errors.Is(err, io.EOF):
			return last[max(0, len(last)-window):], nil
		case err != nil:
			return nil, fmt.Errorf("reading a log: %w", err)
		}
	}
}
