// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/flowcontrol/memory"
)

func TestPagesLimitWholeList(t *testing.T) {
	page := "[" + strings.Repeat("{},", 10_000) + "{}]" // weighs 170,017
	read := func(pages io.Writer, text string) error {
		_, err := io.ReadAll(io.TeeReader(strings.NewReader(text), pages))
		return err
	}
	ctx := Pages(t.Context())
	for i, want := range []error{nil, nil, ErrTooLarge} {
		if err := read(pagesOf(ctx), page); !errors.Is(err, want) {
			t.Errorf("page %d: %v, want %v", i+1, err, want)
		}
		if err := read(pagesOf(t.Context()), page); err != nil {
			t.Errorf("an answer of its own: %v", err)
		}
	}
	ctx = Pages(t.Context())
	for i, want := range []error{nil, nil, nil, nil, ErrTooLarge} {
		if err := read(pagesOf(ctx), strings.Repeat("x", 8<<20)); !errors.Is(err, want) {
			t.Errorf("8 MiB, %d times: %v, want %v", i+1, err, want)
		}
	}
}

// Memory is reserved while a list is read, before it takes much more, and never for an ordinary
// answer.
func TestPagesReserveMemory(t *testing.T) {
	full := errors.New("no memory")
	// what a byte takes
	for text, atOnce := range map[string]int{strings.Repeat("x", 1<<20): 2, strings.Repeat("{},", 1000): 400} {
		asked := 0
		ctx := memory.WithReserve(Pages(t.Context()), func(bytes int) error {
			if asked += bytes; asked > 20<<20 {
				return full
			}
			return nil
		})
		read, err := 0, error(nil)
		for ; err == nil && read < 64<<20; read += len(text) {
			err = func() error { _, err := answerOf(ctx).Write([]byte(text)); return err }()
			if took := atOnce * read; err == nil && took > asked+unreserved {
				t.Fatalf("%d bytes take %d, and %d are asked for", read, took, asked)
			}
		}
		if !errors.Is(err, full) || asked > 24<<20 {
			t.Errorf("after %d bytes, for which %d were asked: %v", read, asked, err)
		}
	}
	ctx := memory.WithReserve(t.Context(), func(int) error { return full })
	if _, err := answerOf(ctx).Write([]byte(strings.Repeat("{},", 500))); err != nil {
		t.Errorf("an ordinary answer: %v", err)
	}
}
