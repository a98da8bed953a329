// SPDX-License-Identifier: Apache-2.0

package terminal_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/terminal"
)

func TestTableWrapsItsLastColumn(t *testing.T) {
	rows := [][]terminal.Cell{
		{{Text: "NAME"}, {Text: "OK"}, {Text: "WHY"}},
		{{Text: "bäckerei"}, {Text: "yes", Style: terminal.Green}, {Text: "one two three four five six"}},
		{{Text: "b"}, {Text: "no", Style: terminal.Red}, {Text: "a-word-that-is-longer-than-its-column"}},
	}
	for name, test := range map[string]struct {
		terminal terminal.Terminal
		want     string
	}{
		"a pipe": {terminal.Terminal{}, `NAME      OK   WHY
bäckerei  yes  one two three four five six
b         no   a-word-that-is-longer-than-its-column
`},
		"a narrow terminal": {terminal.Terminal{Width: 36}, `NAME      OK   WHY
bäckerei  yes  one two three four
               five six
b         no   a-word-that-is-longer-than-its-column
`},
		"one that is too narrow": {terminal.Terminal{Width: 20}, `NAME      OK   WHY
bäckerei  yes  one two three four five six
b         no   a-word-that-is-longer-than-its-column
`},
		"with colors": {terminal.Terminal{Color: true}, "NAME      OK   WHY\n" +
			"bäckerei  \x1b[32myes\x1b[0m  one two three four five six\n" +
			"b         \x1b[31mno\x1b[0m   a-word-that-is-longer-than-its-column\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := test.terminal.Table(&out, rows); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A file has no width and no colors, unless COLUMNS has a width.
func TestOfReadsColumns(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for columns, want := range map[string]int{"": 0, "0": 0, "x": 0, "-3": 0, "72": 72} {
		t.Setenv("COLUMNS", columns)
		if got := terminal.Of(file); got != (terminal.Terminal{Width: want}) {
			t.Errorf("COLUMNS=%q: %+v", columns, got)
		}
	}
}
