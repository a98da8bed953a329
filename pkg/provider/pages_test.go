// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestAListIsBoundedOverAllItsPages(t *testing.T) {
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
