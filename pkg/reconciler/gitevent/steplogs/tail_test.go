// SPDX-License-Identifier: Apache-2.0

package steplogs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"
)

// endless is a log of one line without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestTailOfALargeLogNeedsLittleMemory(t *testing.T) {
	const gigabyte = 1 << 30
	log := io.MultiReader(io.LimitReader(endless{}, gigabyte), strings.NewReader("\nlast line\n"))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := tail(log, maxRead)
	runtime.ReadMemStats(&after)
	if err != nil || !strings.HasSuffix(string(got), "x\nlast line\n") || len(got) != window {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 8*window {
		t.Errorf("%d KiB were allocated", allocated>>10)
	}
}

func TestTail(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, chunk, window - 1, window, window + 1, 2 * window, 5*window + 7} {
		var log strings.Builder
		for log.Len() < n {
			log.WriteString("0123456789\n")
		}
		text := log.String()[:n]
		got, err := tail(iotest.OneByteReader(strings.NewReader(text)), maxRead)
		if want := text[max(0, n-window):]; err != nil || string(got) != want {
			t.Errorf("of %d bytes: %d bytes, %v", n, len(got), err)
		}
	}
	if _, err := tail(endless{}, 1<<20); !errors.Is(err, errTooLong) {
		t.Errorf("a log that does not end: %v", err)
	}
	if _, err := tail(iotest.ErrReader(io.ErrUnexpectedEOF), maxRead); err == nil {
		t.Error("a log that breaks off counts as read")
	}
}

func TestReadReadsAllStepsAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for n := range 3 {
		f.failed(fmt.Sprint("t", n), "text")
	}
	f.answer = func(path string) int { return map[bool]int{true: 408}[path == "pods/run-t0-pod/log"] }
	ctx, end := context.WithTimeout(t.Context(), 30*time.Second)
	defer end()
	var others atomic.Int64
	f.closed = func(path string) {
		if strings.HasSuffix(path, "/log") && others.Add(1) == 2 {
			end()
		}
	}
	got, again := f.reader().Read(ctx, request())
	if !again || texts(got) != 2 {
		t.Errorf("%+v, again %v", got, again)
	}
}
