// SPDX-License-Identifier: Apache-2.0

// Package text makes texts from anywhere fit for a Git service: valid, and within the length that
// it allows.
package text

import (
	"strings"
	"unicode/utf8"
)

// Start returns the longest start of s that has at most limit units and ends with a whole
// character. What a unit is, is the service's own: Bytes or Runes.
type Start func(s string, limit int) string

// Bytes counts bytes.
func Bytes(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	limit = max(limit, 0)
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// Runes counts Unicode code points.
func Runes(s string, limit int) string {
	for i := range s {
		if limit <= 0 {
			return s[:i]
		}
		limit--
	}
	return s
}

// Clean makes valid UTF-8 without NUL, which neither JSON decoders nor databases are sure to keep.
func Clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// OneLine makes one line of at most limit units; a line that was cut ends with an ellipsis.
func OneLine(s string, limit int, start Start) string {
	const mark = "…"
	s = strings.Join(strings.Fields(Clean(s)), " ")
	if start(s, limit) == s {
		return s
	}
	return start(s, limit-room(mark, start)) + mark
}

// FirstLine is a message's first line of at most limit bytes.
func FirstLine(message string, limit int) string {
	line, _, _ := strings.Cut(strings.TrimSpace(Clean(message)), "\n")
	return Bytes(strings.TrimSpace(line), limit)
}

// Markdown shortens s to at most limit units, the mark that says so included. A code fence that it
// cuts open is closed, so that the mark is seen as text.
func Markdown(s string, limit int, mark string, start Start) string {
	const fence = "\n```"
	s = Clean(s)
	if start(s, limit) == s {
		return s
	}
	s = start(s, limit-room(mark+fence, start))
	if strings.Count("\n"+s, fence)%2 == 1 {
		s += fence
	}
	return s + mark
}

// room is the units s has.
func room(s string, start Start) int {
	n := 0
	for start(s, n) != s {
		n++
	}
	return n
}
