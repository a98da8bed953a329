// SPDX-License-Identifier: Apache-2.0

package steplogs

import (
	"bytes"
	"html"
	"regexp"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// view is a text without what may divide or disguise a value. Of a log it has where each byte was:
// the bytes from at[i] to before end[i] became byte i.
type view struct {
	text    []byte
	at, end []int
	placed  bool
}

// newView returns an empty view of a text.
func newView(text []byte, placed bool) *view {
	v := &view{text: make([]byte, 0, len(text)), placed: placed}
	if placed {
		v.at, v.end = make([]int, 0, len(text)), make([]int, 0, len(text))
	}
	return v
}

func (v *view) add(text []byte, at, end int) {
	v.text = append(v.text, text...)
	for range text {
		if v.placed {
			v.at, v.end = append(v.at, at), append(v.end, end)
		}
	}
}

// joined returns the text without line breaks and the spaces at them.
func joined(text []byte, placed bool) *view {
	v := newView(text, placed)
	broken := true
	for i, b := range text {
		switch {
		case b == '\n' || b == '\r':
			v.trim()
			broken = true
		case broken && space(b):
		default:
			v.add(text[i:i+1], i, i+1)
			broken = false
		}
	}
	v.trim()
	return v
}

// trim removes the spaces at the end.
func (v *view) trim() {
	if v.text = bytes.TrimRight(v.text, " \t"); v.placed {
		v.at, v.end = v.at[:len(v.text)], v.end[:len(v.text)]
	}
}

func space(b byte) bool { return b == ' ' || b == '\t' }

// decoded returns the text without spaces, line breaks and quotes, and as it was before a shell, a
// language, JSON, a URL or HTML escaped it. A value is searched in the same view of itself, so what
// looks like an escape sequence in it does no harm.
func decoded(text []byte, placed bool) *view {
	v := newView(text, placed)
	for i := 0; i < len(text); {
		plain, n := decode(text[i:])
		if len(plain) != 1 || !dropped(plain[0]) {
			v.add(plain, i, i+n)
		}
		i += n
	}
	return v
}

func dropped(b byte) bool { return b <= ' ' || b == '\'' || b == '"' || b == '\\' || b == 0x7f }

// decode returns what a text begins with, and the length of its escape sequence.
func decode(text []byte) (plain []byte, n int) {
	switch text[0] {
	case '\\':
		return unescape(text)
	case '%':
		from := 1
		for bytes.HasPrefix(text[from:], []byte("25")) && hex(text[from+2:], 2) >= 0 { // encoded twice
			from += 2
		}
		if code := hex(text[from:], 2); code >= 0 {
			return []byte{byte(code)}, from + 2
		}
	case '&':
		if entity := entity.Find(text); entity != nil {
			return printable([]rune(html.UnescapeString(string(entity)))[0]), len(entity)
		}
	}
	return text[:1], 1
}

var entity = regexp.MustCompile(`^&(?:lt|gt|amp|quot|apos|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});`)

// unescape decodes a text that begins with a backslash, or with several if it was escaped twice.
func unescape(text []byte) (plain []byte, n int) {
	for n < len(text) && text[n] == '\\' {
		n++
	}
	rest := text[n:]
	if len(rest) == 0 {
		return nil, n
	}
	switch rest[0] {
	case 'a', 'b', 'e', 'E', 'f', 'n', 'r', 't', 'v':
		return nil, n + 1
	case 'x':
		if code := hex(rest[1:], 2); code >= 0 {
			return []byte{byte(code)}, n + 3
		}
	case 'u':
		code := hex(rest[1:], 4)
		if code < 0 {
			break
		}
		if next := rest[5:]; utf16.IsSurrogate(rune(code)) && len(next) > n && next[0] == '\\' && next[n] == 'u' {
			if second := hex(next[n+1:], 4); second >= 0 {
				return printable(utf16.DecodeRune(rune(code), rune(second))), n + 5 + n + 5
			}
		}
		return printable(rune(code)), n + 5
	case 'U':
		if code := hex(rest[1:], 8); code >= 0 {
			return printable(rune(code)), n + 9
		}
	case '0', '1', '2', '3':
		if code, err := strconv.ParseUint(string(rest[:min(3, len(rest))]), 8, 8); err == nil && len(rest) >= 3 {
			return []byte{byte(code)}, n + 3
		}
	}
	return nil, n
}

// hex returns the number that a text begins with, -1 if it is none of n digits.
func hex(text []byte, n int) int64 {
	if len(text) < n {
		return -1
	}
	code, err := strconv.ParseUint(string(text[:n]), 16, 32)
	if err != nil {
		return -1
	}
	return int64(code)
}

// printable returns a character, or nothing for one that cleaned removes.
func printable(r rune) []byte {
	if !unicode.IsPrint(r) {
		return nil
	}
	return utf8.AppendRune(nil, r)
}
