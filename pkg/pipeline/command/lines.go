// SPDX-License-Identifier: Apache-2.0

package command

import (
	"regexp"
	"strings"
)

const (
	commentBegins = "<!--"
	commentEnds   = "-->"
	// codeIndent is the spaces in front of a line that make it code
	// (https://spec.commonmark.org/0.31.2/#indented-code-blocks).
	codeIndent = "    "
	// blanks are what Markdown takes for white space. Other spaces are text to it.
	blanks = " \t"
)

// lines returns the lines of a comment in which a command may begin, and an empty one for each
// other. Commands do not begin in what somebody quotes or shows as code, nor where nobody sees
// them. In doubt a line is not one of those: Markdown has more rules than are followed here.
func lines(comment string) []string {
	comment = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(comment)
	if len(comment) > maxComment {
		comment = comment[:strings.LastIndexByte(comment[:maxComment], '\n')+1]
	}
	all := strings.Split(comment, "\n")
	var m markdown
	for i, line := range all {
		all[i] = m.line(line)
	}
	return all
}

// markdown knows what the next line of a comment is part of.
type markdown struct {
	// fence is what closes the code block, "" outside of one; indent is how many spaces may stand
	// in front of it.
	fence  string
	indent int
	// hidden is true inside of an HTML comment.
	hidden bool
	// tag is the HTML element of which everything is shown as it is, "" outside of one.
	tag string
	// quoted is true in a quote and in the lines below it, which belong to its last paragraph until
	// one is empty (https://spec.commonmark.org/0.31.2/#lazy-continuation-line).
	quoted bool
}

// line returns what people see of a line in which a command may begin, "" for any other.
func (m *markdown) line(line string) string {
	if m.fence != "" {
		if m.closes(line) {
			m.fence = ""
		}
		return ""
	}
	wasHidden := m.hidden || m.tag != ""
	if !wasHidden && m.opens(line) {
		m.quoted = false
		return ""
	}
	isQuote := !wasHidden && quotePattern.MatchString(line)
	m.quoted = isQuote || m.quoted && strings.Trim(line, blanks) != ""
	seen := m.uncomment(line)
	if !isQuote { // an element ends with its quote
		m.element(seen)
	}
	text := strings.TrimLeft(line, " ")
	switch {
	case wasHidden, m.tag != "", m.quoted, strings.HasPrefix(text, commentBegins):
		return ""
	case strings.HasPrefix(line, codeIndent), strings.HasPrefix(text, "\t"):
		return ""
	}
	return seen
}

// quotePattern is the beginning of a line of a quote, in a list or not.
var quotePattern = regexp.MustCompile(`^ *(?:(?:[-*+]|[0-9]{1,9}[.)]) {1,4})*>`)

// elementPattern is the beginning of an HTML element that is shown as it is
// (https://spec.commonmark.org/0.31.2/#html-blocks), in lower case. One behind a backtick is code
// within a line.
var elementPattern = regexp.MustCompile("(?:^|[^`])<(pre|script|style|textarea)(?:[ \t>]|$)")

// element notes which element a line leaves open. Only its own end closes it.
func (m *markdown) element(line string) {
	for line = strings.ToLower(line); ; {
		if m.tag == "" {
			found := elementPattern.FindStringSubmatchIndex(line)
			if found == nil {
				return
			}
			m.tag, line = line[found[2]:found[3]], line[found[3]:]
		}
		_, behind, found := strings.Cut(line, "</"+m.tag+">")
		if !found {
			return
		}
		m.tag, line = "", behind
	}
}

// fencePattern is the beginning of a code block, in a list or not (https://spec.commonmark.org/0.31.2/#fenced-code-blocks).
var fencePattern = regexp.MustCompile("^( {0,3})((?:(?:[-*+]|[0-9]{1,9}[.)]) {1,4})*)(```+|~~~+)(.*)$")

// opens reports whether a line opens a code block.
func (m *markdown) opens(line string) bool {
	found := fencePattern.FindStringSubmatch(line)
	if found == nil {
		return false
	}
	indent, list, fence, info := found[1], found[2], found[3], found[4]
	if fence[0] == '`' && strings.Contains(info, "`") { // code within a line
		return false
	}
	m.fence, m.indent = fence, len(codeIndent)-1
	if list != "" {
		m.indent += len(indent) + len(list)
	}
	return true
}

// closes reports whether a line closes the code block.
func (m *markdown) closes(line string) bool {
	text := strings.TrimLeft(line, " ")
	end := strings.TrimRight(text, blanks)
	return len(line)-len(text) <= m.indent && len(end) >= len(m.fence) && strings.Trim(end, m.fence[:1]) == ""
}

// uncomment returns a line with a space for each HTML comment in it.
func (m *markdown) uncomment(line string) string {
	var seen strings.Builder
	for {
		mark := commentBegins
		if m.hidden {
			mark = commentEnds
		}
		before, behind, found := strings.Cut(line, mark)
		if !m.hidden {
			seen.WriteString(before)
		}
		if !found {
			return seen.String()
		}
		if m.hidden = !m.hidden; m.hidden {
			seen.WriteByte(' ')
		}
		line = behind
	}
}
