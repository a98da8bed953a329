// SPDX-License-Identifier: Apache-2.0

package command

import (
	"regexp"
	"strings"
)

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
		if at == nil {
			return seen.String() + line
		}
		seen.WriteString(line[:at[0]] + " ")
		m.hidden, line = end, line[at[1]:]
	}
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
// one of several, be escaped, be in a tag or a comment, or close code that began on a line above.
func (m *markdown) code(line string, from int, at []int) int {
	limit := len(line)
	if at != nil {
		limit = at[0]
	}
	before, _, found := strings.Cut(line[from:limit], "`")
	if m.inDoubt || !found {
		return 0
	}
	begin := from + len(before) + 1
	length := strings.IndexByte(line[begin:], '`')
	if length <= 0 || strings.ContainsAny(before, `<\`) || strings.HasPrefix(line[begin+length+1:], "`") {
		m.inDoubt = true
		return 0
	}
	return begin + length + 1
}
