// SPDX-License-Identifier: Apache-2.0

package mistake

import (
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxSearched bounds the texts in which Syntax looks for the line: that takes up to 15 parses of a part of the text.
const maxSearched = 64 << 10

var (
	// parserWords is how the parser starts its messages when it knows a line.
	parserWords = regexp.MustCompile(`^yaml: (?:line ([0-9]+): )?`)
	// unclosed are messages about a flow collection, which the parser says with the line at which that begins.
	unclosed = regexp.MustCompile(`^did not find expected ',' or '([]}])'$`)
	// cutOff are messages that the parser says of the beginning of a right text as well: with fewer lines the same message would
	// be about something else. Of these the parser knows the line, counted from 0 if it is not its scanner that found it.
	cutOff = regexp.MustCompile(`^(?:did not find expected (?:',' or|node content)|(found unexpected|could not find expected ':'|did not find the expected '>'))`)
)

// Syntax returns the line, from 1, of a text that is not YAML for the given reason, and the parser's words about it. The line
// that is in those words is often another one: where a mapping begins that goes wrong at its end, or the one above.
func Syntax(text string, reason error) (line int, words string) {
	if len(text) > maxSearched || strings.Contains(text, "\x00") { // or it may be UTF-16
		return Said(text, reason)
	}
	_, words = split(reason)
	lines := strings.SplitAfter(text, "\n")
	line = lineOf(lines, words)
	if match := unclosed.FindStringSubmatch(words); match != nil {
		return line, "the " + opening[match[1]] + " that begins here is not closed, or a comma is missing in it"
	}
	if line < 2 {
		return line, words
	}
	// What begins at a line above and was not closed makes an error of the first line that does not fit into it.
	begin, open := split(parse("\n" + strings.Join(lines[:line-1], "") + "\n\"x\" \"x\"\n"))
	if match := unclosed.FindStringSubmatch(open); match != nil && begin < line && indentation(lines[line-1]) <= indentation(lines[begin-1]) {
		return begin, "the " + opening[match[1]] + " that begins here is not closed"
	}
	return line, words
}

// Said is Syntax without a search: the line that the parser says, or the first.
func Said(text string, reason error) (line int, words string) {
	line, words = split(reason)
	return min(max(line, 1), strings.Count(text, "\n")+1), words
}

var unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)

// Column returns the column, from 1, at which a line has what the words of Syntax are about, 0 if they do not say it.
func Column(line, words string) int {
	at := -1
	if match := unknownAnchor.FindStringSubmatch(words); match != nil {
		at = strings.Index(line, "*"+match[1])
	} else if strings.Contains(words, "begins here is not closed") {
		at = unmatched(line)
	}
	if at < 0 {
		return 0
	}
	return utf8.RuneCountInString(line[:at]) + 1
}

// unmatched is where the last bracket of a line opens that the line does not close, -1 if there is none.
func unmatched(line string) int {
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

// opening is what ends in a bracket.
var opening = map[string]string{"}": "mapping { }", "]": "list [ ]"}

// lineOf returns the line of a text's error.
func lineOf(lines []string, words string) int {
	if match := cutOff.FindStringSubmatch(words); match != nil {
		// With an empty line in front, what the parser says is never about line 0, which it takes for no line.
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

// split returns the line that is in the parser's message, 0 if there is none, and the words behind it.
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
