// SPDX-License-Identifier: Apache-2.0

package yamlerror

import (
	"cmp"
	"regexp"
	"strings"
)

// The words of this package for mistakes whose column Column finds.
const (
	openQuote  = "this quote is never closed"
	afterQuote = "there is text after the closing quote: put all of it within the quotes"
	tab        = "a tab is not allowed here: indent with spaces"
	twoColons  = "the value has a colon and a space: put quotes around it"
)

// What the parser says.
const (
	noKey     = "did not find expected key"
	noColon   = "could not find expected ':'"
	noEnd     = "found unexpected end of stream"
	noToken   = "found character that cannot start any token"
	noMapping = "mapping values are not allowed in this context"
	tabFound  = "found a tab character" // the beginning of several
)

// ofAuthors are the words of authors for what the parser says.
func ofAuthors(words string) string {
	return cmp.Or(map[string]string{
		noToken:                               "no value begins with this character: put quotes around the value",
		noMapping:                             "no key is expected here: check the indentation of this line and of the one above",
		noKey:                                 "a key is expected here: check the indentation of this line and of the one above",
		noColon:                               "a key and a colon are expected here",
		"did not find expected '-' indicator": "an item of a list (- …) is expected here: check the indentation of this line",
		"found unknown escape character": "a backslash within double quotes begins an escape sequence that YAML does not " +
			"know: write two of them, or single quotes",
	}[words], words)
}

// plain says in the words of authors what the parser has said of a line. It may find the mistake in
// an earlier line.
func plain(lines []string, line int, words string) (int, string) {
	text := strings.TrimRight(lines[line-1], "\r\n")
	switch words {
	case noKey, noEnd, noColon:
		if open := unclosedQuote(lines[:line]); open > 0 {
			return open, openQuote
		}
		if behindQuote(text) >= 0 {
			return line, afterQuote
		}
	case noToken:
		if tabAt(text) >= 0 {
			return line, tab
		}
	case noMapping:
		if behindQuote(text) >= 0 {
			return line, afterQuote
		}
		if secondColon(text) >= 0 {
			return line, twoColons
		}
	}
	if strings.HasPrefix(words, tabFound) {
		return line, tab
	}
	return line, ofAuthors(words)
}

// tabAt returns the index of a tab before the first other character of a line, of its list marks or
// of its value, or -1.
func tabAt(line string) int {
	found := tabbed.FindStringIndex(line)
	if found == nil {
		return -1
	}
	return strings.IndexByte(line, '\t')
}

var tabbed = regexp.MustCompile(`^[ -]*\t|:[ ]*\t`)

var (
	colon = regexp.MustCompile(`:(?:[ \t]|$)`)
	// blockScalar matches the end of a line whose value is the lines below it.
	blockScalar = regexp.MustCompile(`(?:^|[:\-] +)[|>][-+0-9]*(?:[ \t]+#.*)?$`)
)

// withoutQuoted replaces texts in quotes, and comments, by spaces.
func withoutQuoted(line string) string {
	return quoted.ReplaceAllStringFunc(line, func(text string) string {
		keep := 0
		if text[0] != '"' && text[0] != '\'' && text[0] != '#' { // what stands before the quote
			keep = 1
		}
		return text[:keep] + strings.Repeat(" ", len(text)-keep)
	})
}

// secondColon returns the index of the second colon of a line that would end a key, or -1.
func secondColon(line string) int {
	found := colon.FindAllStringIndex(withoutQuoted(line), -1)
	if len(found) < 2 {
		return -1
	}
	return found[1][0]
}

// closedQuote matches a text in quotes with what stands behind it.
var closedQuote = regexp.MustCompile(`(?:^|[\s,:\[{])(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')[ \t]*([^\s,\]}:#])`)

// behindQuote returns the index of the text that follows a closing quote, or -1.
func behindQuote(line string) int {
	found := closedQuote.FindStringSubmatchIndex(line)
	if found == nil {
		return -1
	}
	return found[2]
}

// unclosedQuote returns the line, from 1, of a quote that is not closed on its own line, and is
// closed by what opens another text or not at all. It returns 0 if there is none.
func unclosedQuote(lines []string) int {
	open, quote, block := 0, byte(0), -1
	for i, line := range lines {
		line = strings.TrimRight(line, "\r\n")
		if block >= 0 && (strings.TrimSpace(line) == "" || indentation(line) > block) {
			continue
		}
		block = -1
		if open > 0 {
			end := closing(line, quote)
			if end < 0 {
				continue
			}
			if rest := strings.TrimLeft(line[end+1:], " \t"); rest != "" && !strings.ContainsAny(rest[:1], ",]}:#") {
				return open
			}
			open, line = 0, line[end+1:]
		}
		if at := openedQuote(line); at >= 0 {
			open, quote = i+1, line[at]
		} else if blockScalar.MatchString(line) {
			block = indentation(line)
		}
	}
	return open
}

// openedQuote returns the index of a quote that a line opens and does not close, or -1.
func openedQuote(line string) int {
	for _, at := range quoted.FindAllStringSubmatchIndex(line, -1) {
		text := line[at[4]:at[5]]
		if text[0] != '#' && (len(text) == 1 || closing(text[1:], text[0]) < 0) {
			return at[4]
		}
	}
	return -1
}

// closing returns the index of the quote that ends a text, or -1.
func closing(text string, quote byte) int {
	for i := 0; i < len(text); i++ {
		switch {
		case quote == '"' && text[i] == '\\':
			i++
		case text[i] != quote:
		case quote == '\'' && i+1 < len(text) && text[i+1] == quote:
			i++
		default:
			return i
		}
	}
	return -1
}
