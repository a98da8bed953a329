// SPDX-License-Identifier: Apache-2.0

package steplogs

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// linesOf returns the lines of a masked log as valid text. Of a line that a program has
// overwritten, it is what a terminal shows last.
func linesOf(text []byte) (lines []string) {
	for line := range strings.Lines(strings.ToValidUTF8(string(text), "\uFFFD")) {
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		line = line[strings.LastIndexByte(line, '\r')+1:]
		if strings.TrimSpace(line) != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// lastLines returns the last n lines as one text, which takes at most limit bytes in JSON.
func lastLines(lines []string, n, limit int) string {
	return end(strings.Join(lines[max(0, len(lines)-n):], "\n"), limit)
}

// end returns the end of a text that takes at most limit bytes in JSON.
func end(text string, limit int) string {
	if v1alpha1.Length(text) <= limit {
		return text
	}
	const mark = "… "
	from := len(text)
	for left := limit - len(mark); from > 0; {
		_, n := utf8.DecodeLastRuneInString(text[:from])
		if left -= v1alpha1.Length(text[from-n : from]); left < 0 {
			break
		}
		from -= n
	}
	return mark + text[from:]
}
