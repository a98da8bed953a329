// SPDX-License-Identifier: Apache-2.0

package caret

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// spot is a line and a column of a file, both from 1.
type spot struct{ line, column int }

// written returns where each character of a scalar's text is in the file, and where the one after
// the last would be. It returns nil if that is uncertain, for example in a folded text with empty
// lines.
func (d *document) written(value *yaml.Node) []spot {
	r := reader{
		lines:  d.hidden,
		want:   []rune(value.Value),
		row:    value.Line - 1,
		column: value.Column - 1,
		style:  value.Style,
	}
	switch {
	case value.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		r.block(d.indentation(d.filled(value.Line + 1)))
	default:
		r.properties()
		if value.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
			r.column++
		}
		r.flow()
	}
	if string(r.got) != value.Value {
		return nil
	}
	return append(r.places, spot{r.row + 1, r.column + 1})
}

// filled returns the first line, from a given one on, that is not blank.
func (d *document) filled(line int) int {
	for line < len(d.lines) && strings.TrimSpace(d.lines[line-1]) == "" {
		line++
	}
	return line
}

// reader reads a scalar as YAML does, and records the place of each character.
type reader struct {
	lines []string
	// want is the text that the parser has read. The reader expects nothing after it.
	want, got   []rune
	places      []spot
	row, column int
	style       yaml.Style
}

func (r *reader) line() []rune {
	if r.row >= len(r.lines) {
		return nil
	}
	return []rune(strings.TrimRight(r.lines[r.row], "\r"))
}

// properties skips the anchor and the tag in front of a value.
func (r *reader) properties() {
	for line := r.line(); r.column < len(line) && (line[r.column] == '&' || line[r.column] == '!'); {
		for r.column < len(line) && line[r.column] != ' ' && line[r.column] != '\t' {
			r.column++
		}
		for r.column < len(line) && (line[r.column] == ' ' || line[r.column] == '\t') {
			r.column++
		}
	}
}

// take records a character. width is the number of columns that it has in the file.
func (r *reader) take(c rune, width int) {
	r.got, r.places = append(r.got, c), append(r.places, spot{r.row + 1, r.column + 1})
	r.column += width
}

func (r *reader) done() bool { return len(r.got) >= len(r.want) || r.row >= len(r.lines) }

// block reads a literal or folded text, which begins on the line below its mark.
func (r *reader) block(indentation int) {
	r.row++
	for !r.done() {
		line := r.line()
		for r.column = indentation; r.column < len(line) && !r.done(); {
			r.take(line[r.column], 1)
		}
		if r.done() {
			return
		}
		end := '\n'
		if next := len(r.got); r.style&yaml.FoldedStyle != 0 && r.want[next] == ' ' {
			end = ' '
		}
		r.take(end, 1)
		r.row++
		r.column = indentation
		if r.style&yaml.FoldedStyle != 0 && end == '\n' && len(line) > 0 {
			r.folded()
		}
	}
}

// folded moves past one blank line of a folded text, because YAML drops the first of several line
// breaks. If a line before or after them is indented, it drops none.
func (r *reader) folded() {
	blank := 0
	for row := r.row; row < len(r.lines) && strings.TrimSpace(r.lines[row]) == ""; row++ {
		blank++
	}
	breaks := 0
	for next := len(r.got) - 1; next < len(r.want) && r.want[next] == '\n'; next++ {
		breaks++
	}
	if blank > 0 && breaks == blank {
		r.row++
	}
}

// flow reads a quoted or plain text. If it has several lines, white space at their ends is dropped,
// and a single line break is a space.
func (r *reader) flow() {
	for !r.done() {
		line := []rune(strings.TrimRight(string(r.line()), " \t"))
		for r.column < len(line) && !r.done() {
			c, width := r.character(line[r.column:])
			r.take(c, width)
		}
		if r.done() {
			return
		}
		r.breaks()
	}
}

// breaks reads line breaks. A single one is a space. Of several, the first is dropped.
func (r *reader) breaks() {
	empty := 0
	for r.row++; r.row < len(r.lines) && strings.TrimSpace(r.lines[r.row]) == ""; r.row++ {
		empty++
	}
	line := r.line()
	r.column = len(line) - len([]rune(strings.TrimLeft(string(line), " \t")))
	if empty == 0 {
		r.take(' ', 0)
	}
	for range empty {
		r.take('\n', 0)
	}
}

// character reads one character and returns how many characters of the file it takes.
func (r *reader) character(rest []rune) (c rune, width int) {
	switch {
	case r.style&yaml.SingleQuotedStyle != 0 && len(rest) > 1 && rest[0] == '\'' && rest[1] == '\'':
		return '\'', 2
	case r.style&yaml.DoubleQuotedStyle != 0 && len(rest) > 1 && rest[0] == '\\':
		return escaped(rest)
	}
	return rest[0], 1
}

// escaped reads what follows a backslash.
func escaped(rest []rune) (c rune, width int) {
	if digits := map[rune]int{'x': 2, 'u': 4, 'U': 8}[rest[1]]; digits > 0 && len(rest) >= 2+digits {
		code, err := strconv.ParseInt(string(rest[2:2+digits]), 16, 32)
		if err == nil {
			return rune(code), 2 + digits
		}
	}
	escapes := map[rune]rune{
		'n': '\n', 't': '\t', 'r': '\r', '0': 0, 'e': 0x1b, 'a': '\a', 'b': '\b', 'v': '\v', 'f': '\f',
	}
	if named, found := escapes[rest[1]]; found {
		return named, 2
	}
	return rest[1], 2
}
