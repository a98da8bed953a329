// SPDX-License-Identifier: Apache-2.0

// Package terminal wraps, colors and aligns text for what an output is shown on.
package terminal

import (
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Terminal is what an output is shown on. The zero value is a file or a pipe.
type Terminal struct {
	// Width is the number of columns that lines are wrapped to; 0 wraps none.
	Width int
	// Color allows escape sequences.
	Color bool
}

// Of returns the terminal of a stream. The environment variable COLUMNS overrides the width, also
// of a file or a pipe. NO_COLOR turns colors off.
func Of(stream io.Writer) Terminal {
	var t Terminal
	file, isFile := stream.(*os.File)
	if isFile && term.IsTerminal(int(file.Fd())) { // #nosec G115 -- a file descriptor is small
		t.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && runtime.GOOS != "windows"
		if width, _, err := term.GetSize(int(file.Fd())); err == nil { // #nosec G115 -- as above
			t.Width = width
		}
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		t.Width = columns
	}
	return t
}

// Style is how a text is shown.
type Style string

// The styles, as ECMA-48 numbers them.
const (
	Bold   Style = "1"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
)

// Paint returns a text in a style.
func (t Terminal) Paint(style Style, text string) string {
	if !t.Color || style == "" || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}

// minText is the least width that a text is wrapped to. In fewer columns, most words would have
// lines of their own.
const minText = 20

// Wrap cuts a text into lines that fit next to an indentation. It breaks at spaces only.
func (t Terminal) Wrap(text string, indentation int) []string {
	width := t.Width - indentation
	if t.Width == 0 || width < minText {
		return []string{text}
	}
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// Cell is a text of a table, and its style.
type Cell struct {
	Text  string
	Style Style
}

// Table writes rows whose last column is wrapped below itself.
func (t Terminal) Table(w io.Writer, rows [][]Cell) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row[:len(row)-1] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell.Text)+2)
		}
	}
	indentation := 0
	for _, width := range widths {
		indentation += width
	}
	var b strings.Builder
	for _, row := range rows {
		last := len(row) - 1
		for i, cell := range row[:last] {
			b.WriteString(t.Paint(cell.Style, cell.Text))
			b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell.Text)))
		}
		for i, line := range t.Wrap(row[last].Text, indentation) {
			if i > 0 {
				b.WriteString(strings.Repeat(" ", indentation))
			}
			b.WriteString(t.Paint(row[last].Style, line) + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
