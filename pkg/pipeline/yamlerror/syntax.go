// SPDX-License-Identifier: Apache-2.0

package yamlerror

import (
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxSearched is the longest text in which Syntax searches, in bytes. A search parses parts of the
// text up to 15 times.
const maxSearched = 64 << 10

var (
	// parserWords matches the beginning of the parser's messages, with a line if it names one.
	parserWords = regexp.MustCompile(`^yaml: (?:line ([0-9]+): )?`)
	// unclosed matches messages about { } and [ ]. The parser names the line where these begin.
	unclosed = regexp.MustCompile(`^did not find expected ',' or '([]}])'$`)
	// cutOff matches messages that the parser also gives for the beginning of a correct text, so
	// that no search can find their line. The line that the parser names is right for these. It
	// counts from 0, unless the parser's scanner found the error (the group).
	cutOff = regexp.MustCompile(`^(?:did not find expected (?:',' or|node content)|` +
		`(found unexpected|could not find expected ':'|did not find the expected '>'))`)
)

// Syntax returns the line of a syntax error, from 1, and what is wrong. The line in the parser's
// own message is often wrong: it is where the surrounding mapping begins, or one less, or missing.
func Syntax(text string, reason error) (line int, words string) {
	if len(text) > maxSearched || strings.Contains(text, "\x00") { // or it may be UTF-16
		return Said(text, reason)
	}
	_, words = split(reason)
	lines := strings.SplitAfter(text, "\n")
	line = lineOf(lines, words)
	if match := unclosed.FindStringSubmatch(words); match != nil {
		return line, "the " + opening(match[1]) + " that begins here is not closed, or a comma is missing in it"
	}
	if line < 2 {
		return plain(lines, line, words)
	}
	// If something above was opened and not closed, the first line that does not fit into it has
	// the error. Two texts side by side make the parser name the line where it was opened.
	begin, open := split(parse("\n" + strings.Join(lines[:line-1], "") + "\n\"x\" \"x\"\n"))
	match := unclosed.FindStringSubmatch(open)
	above := match != nil && begin > 0 && begin < line
	if above && indentation(lines[line-1]) <= indentation(lines[begin-1]) {
		return begin, "the " + opening(match[1]) + " that begins here is not closed"
	}
	return plain(lines, line, words)
}

// Said is Syntax without a search. It returns the line in the parser's message, or the first line.
func Said(text string, reason error) (line int, words string) {
	line, words = split(reason)
	return min(max(line, 1), strings.Count(text, "\n")+1), words
}

var unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)

// Column returns the column of the mistake in its line, from 1, or 0 if the words of Syntax do not
// tell.
func Column(line, words string) int {
	at := -1
	finders := map[string]func(string) int{
		openQuote: openedQuote, afterQuote: behindQuote, tab: tabAt, twoColons: secondColon,
	}
	if find := finders[words]; find != nil {
		at = find(line)
	} else if match := unknownAnchor.FindStringSubmatch(words); match != nil {
		at = alias(line, match[1])
	} else if strings.Contains(words, "begins here is not closed") {
		at = unmatched(line)
	}
	if at < 0 {
		return 0
	}
	return utf8.RuneCountInString(line[:at]) + 1
}

// alias returns the index of an alias in a line, or -1.
func alias(line, name string) int {
	found := regexp.MustCompile(`\*` + regexp.QuoteMeta(name) + `(?:[\s,\[\]{}:]|$)`).FindStringIndex(line)
	if found == nil {
		return strings.Index(line, "*"+name)
	}
	return found[0]
}

// quoted matches texts in quotes where a value or a key may begin, and a comment.
var quoted = regexp.MustCompile(`(^|[\s,:\[{])("(?:[^"\\]|\\.)*"?|'(?:[^']|'')*'?|#.*)`)

// unmatched returns the index of the last bracket that is opened in a line and not closed there, or
// -1. Brackets in quotes and comments do not count.
func unmatched(line string) int {
	line = quoted.ReplaceAllStringFunc(line, func(text string) string {
		return text[:1] + strings.Repeat(" ", len(text)-1)
	})
	var open []int
	for i, c := range line {
		switch c {
		case '{', '[':
			open = append(open, i)
		case '}', ']':
			open = open[:max(len(open)-1, 0)]
		}
	}
	if len(open) == 0 {
		return -1
	}
	return open[len(open)-1]
}

// opening names what a closing bracket ends.
func opening(bracket string) string {
	if bracket == "}" {
		return "mapping { }"
	}
	return "list [ ]"
}

// lineOf returns the line of the syntax error.
func lineOf(lines []string, words string) int {
	if match := cutOff.FindStringSubmatch(words); match != nil {
		// The parser names no line when it means line 0. So an empty line is put in front.
		line, _ := split(parse("\n" + strings.Join(lines, "")))
		if match[1] != "" {
			line--
		}
		return min(max(line, 1), len(lines))
	}
	return 1 + sort.Search(len(lines)-1, func(i int) bool {
		_, said := split(parse(strings.Join(lines[:i+1], "")))
		return said == words
	})
}

func parse(text string) error {
	return yaml.NewDecoder(strings.NewReader(text)).Decode(new(yaml.Node))
}

// split returns the line in the parser's message, or 0, and the rest of the message.
func split(reason error) (line int, words string) {
	if reason == nil {
		return 0, ""
	}
	words = reason.Error()
	if start := parserWords.FindStringSubmatch(words); start != nil {
		line, _ = strconv.Atoi(start[1])
		words = words[len(start[0]):]
	}
	return line, words
}

func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }
