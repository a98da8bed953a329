// SPDX-License-Identifier: Apache-2.0

package steplogs

import (
	"bytes"
	"encoding/hex"
	"html"
	"regexp"
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
		for bytes.HasPrefix(text[from:], []byte("25")) && hexBytes(text[from+2:], 1) != nil { // encoded twice
			from += 2
		}
		if b := hexBytes(text[from:], 1); b != nil {
			return b, from + 2
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
		if b := hexBytes(rest[1:], 1); b != nil {
			return b, n + 3
		}
	case 'u':
		return unescapeUTF16(rest, n)
	case 'U':
		if b := hexBytes(rest[1:], 4); b != nil && b[0] == 0 {
			return printable(rune(b[1])<<16 | rune(b[2])<<8 | rune(b[3])), n + 9
		}
	case '0', '1', '2', '3':
		return octal(rest, n)
	}
	return nil, n
}

// unescapeUTF16 decodes a text that begins with u and 4 digits, after n backslashes, and a second
// one if both are the halves of one character.
func unescapeUTF16(rest []byte, n int) (plain []byte, length int) {
	code, ok := utf16Unit(rest[1:])
	if !ok {
		return nil, n
	}
	if next := rest[5:]; utf16.IsSurrogate(code) && len(next) > n && next[0] == '\\' && next[n] == 'u' {
		if second, ok := utf16Unit(next[n+1:]); ok {
			return printable(utf16.DecodeRune(code, second)), n + 5 + n + 5
		}
	}
	return printable(code), n + 5
}

// octal decodes a text that begins with 3 octal digits, after n backslashes.
func octal(rest []byte, n int) (plain []byte, length int) {
	if len(rest) < 3 {
		return nil, n
	}
	var code byte
	for _, digit := range rest[:3] {
		if digit < '0' || digit > '7' {
			return nil, n
		}
		code = code<<3 | digit - '0'
	}
	return []byte{code}, n + 3
}

// hexBytes returns the n bytes whose digits a text begins with, nil if these are no digits.
func hexBytes(text []byte, n int) []byte {
	if len(text) < 2*n {
		return nil
	}
	b := make([]byte, n)
	if _, err := hex.Decode(b, text[:2*n]); err != nil {
		return nil
	}
	return b
}

func utf16Unit(text []byte) (rune, bool) {
	b := hexBytes(text, 2)
	if b == nil {
		return 0, false
	}
	return rune(b[0])<<8 | rune(b[1]), true
}

// printable returns a character, or nothing for one that cleaned removes.
func printable(r rune) []byte {
	if !unicode.IsPrint(r) {
		return nil
	}
	return utf8.AppendRune(nil, r)
}
