// SPDX-License-Identifier: Apache-2.0

// Package text makes any text fit a limit, without splitting a character, and valid UTF-8.
package text

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Start returns the longest prefix of s that has at most limit units and ends with a whole
// character. A unit is what Bytes or Runes counts.
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

// Clean returns valid UTF-8 without NUL, which JSON decoders and databases may not preserve.
func Clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// Shorten cuts s to limit units. A text that was cut gets an ellipsis in addition.
func Shorten(s string, limit int, start Start) string {
	if short := start(s, limit); short != s {
		return short + "…"
	}
	return s
}

// OneLine returns one line of at most limit units; a line that was cut ends with an ellipsis.
func OneLine(s string, limit int, start Start) string {
	const mark = "…"
	s = strings.Join(strings.Fields(Clean(s)), " ")
	if start(s, limit) == s {
		return s
	}
	return start(s, limit-room(mark, start)) + mark
}

// Some joins the first texts, at most so many, and says how many more there are.
func Some(all []string, most int, separator string) string {
	joined := strings.Join(all[:min(len(all), most)], separator)
	if left := len(all) - most; left > 0 {
		joined += fmt.Sprintf(" and %d more", left)
	}
	return joined
}

// FirstLine returns a message's first line, at most limit bytes of it.
func FirstLine(message string, limit int) string {
	line, _, _ := strings.Cut(strings.TrimSpace(Clean(message)), "\n")
	return Bytes(strings.TrimSpace(line), limit)
}

// Markdown shortens s to at most limit units, including the mark that says so. It closes a code
// fence that it cuts, so that the mark is outside of it.
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

// room returns how many units s has.
func room(s string, start Start) int {
	n := 0
	for start(s, n) != s {
		n++
	}
	return n
}

// Code makes words a Markdown code span on one line, in which nothing is interpreted. It returns ""
// for no words.
func Code(words string) string {
	words = strings.Join(strings.Fields(strings.ToValidUTF8(words, "\uFFFD")), " ")
	if words == "" {
		return ""
	}
	mark := Fence(words, "`")
	if strings.HasPrefix(words, "`") || strings.HasSuffix(words, "`") {
		words = " " + words + " "
	}
	return mark + words + mark
}

// Fence returns least, made longer than any run of backticks in words.
func Fence(words, least string) string {
	for strings.Contains(words, least) {
		least += "`"
	}
	return least
}
