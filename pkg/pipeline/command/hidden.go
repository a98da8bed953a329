// SPDX-License-Identifier: Apache-2.0

package command

import (
	"regexp"
	"strings"
)

// definitionPattern is the beginning of the definition of a link or a footnote, in a list or not
// (https://spec.commonmark.org/0.31.2/#link-reference-definitions). A page does not show it, and
// its label, its address and its title may be on several lines.
var definitionPattern = regexp.MustCompile(
	`^[ \t]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)*\[(?:[^\]\\]|\\.)*(?:\]:|\\?$)`)

// findDefinition notes whether a line of a paragraph may begin a definition.
func (m *markdown) findDefinition(line string) {
	if definitionPattern.MatchString(line) && (m.list || !isCode(line)) {
		m.defines = true
	}
}

// shown returns a line with a space for each part of it that a page does not show.
func (m *markdown) shown(line string) string {
	var seen strings.Builder
	for {
		if m.hidden != nil {
			end := m.hidden.FindStringIndex(line)
			if end == nil {
				m.inDoubt = m.inDoubt || strings.Contains(line, "`")
				return seen.String()
			}
			m.inDoubt = m.inDoubt || strings.Contains(line[:end[1]], "`")
			m.hidden, line = nil, line[end[1]:]
		}
		at, end := m.hidesOutsideCode(line)
		switch {
		case at == nil:
			return seen.String() + line
		case !isEscaped(line[:at[0]]) && m.ends(end, line[at[1]:]):
			seen.WriteString(line[:at[0]] + " ")
			m.hidden = end
		default:
			seen.WriteString(line[:at[1]])
		}
		line = line[at[1]:]
	}
}

// isEscaped reports whether what is behind a text is escaped: an odd number of backslashes ends it.
func isEscaped(text string) bool { return (len(text)-len(strings.TrimRight(text, `\`)))%2 == 1 }

// scan is what is known of the lines below a line.
type scan struct {
	// line is the index of a line whose rest has no end.
	line int
	// until is the index of the next line that is empty or has the end, and found is true if it has
	// the end.
	until int
	found bool
}

// ends reports whether HTML that a page does not show ends within its paragraph. If not, it is text
// (https://spec.commonmark.org/0.31.2/#raw-html). behind is the rest of the line. Each line is read
// once for each kind of end, whatever a comment consists of.
func (m *markdown) ends(end *regexp.Regexp, behind string) bool {
	known := m.scans[end]
	if known.until <= m.current {
		known = scan{line: -1, until: m.current}
	}
	if known.line != m.current && end.MatchString(behind) {
		return true
	}
	known.line = m.current
	if known.until == m.current {
		for known.until++; known.until < len(m.lines) && !isEmpty(m.lines[known.until]); known.until++ {
			if known.found = end.MatchString(m.lines[known.until]); known.found {
				break
			}
		}
	}
	m.scans[end] = known
	return m.page || known.found && !m.heading
}

// hidesOutsideCode is hides for a line of which parts may be code.
func (m *markdown) hidesOutsideCode(line string) (at []int, end *regexp.Regexp) {
	for code := 0; ; {
		if at, end = hides(line[code:]); at != nil {
			at[0], at[1] = at[0]+code, at[1]+code
		}
		for {
			next := m.code(line, code, at)
			if next == 0 {
				return at, end
			}
			if code = next; at != nil && code > at[0] {
				break
			}
		}
	}
}

// code returns the end of the next code within a line, which begins after from and before what is
// at at; 0 if there is none. In doubt there is none in the rest of the paragraph: a backtick may be
// escaped, be in a tag or a comment, or belong to code that is on several lines.
func (m *markdown) code(line string, from int, at []int) int {
	limit := len(line)
	if at != nil {
		limit = at[0]
	}
	before, _, found := strings.Cut(line[from:limit], "`")
	if m.inDoubt || !found {
		return 0
	}
	end := codeEnd(line, from+len(before))
	if m.inDoubt = end == 0 || strings.ContainsAny(before, `<\`); m.inDoubt {
		return 0
	}
	return end
}

// withoutCode returns a line without the code within it. In doubt it has none.
func (m *markdown) withoutCode(line string) string {
	var text strings.Builder
	for !m.inDoubt {
		before, _, found := strings.Cut(line, "`")
		end := codeEnd(line, len(before))
		if !found || end == 0 {
			break
		}
		text.WriteString(before + " ")
		line = line[end:]
	}
	return text.String() + line
}

// codeEnd returns the end of the code within a line that begins with the backticks at begin: behind
// the next ones of that number. It returns 0 if the line has none.
func codeEnd(line string, begin int) int {
	width := 0
	for at := begin; at < len(line); {
		next := strings.IndexByte(line[at:], '`')
		if next < 0 {
			return 0
		}
		at += next
		ticks := len(line) - at - len(strings.TrimLeft(line[at:], "`"))
		at += ticks
		switch width {
		case 0:
			width = ticks
		case ticks:
			return at
		}
	}
	return 0
}
