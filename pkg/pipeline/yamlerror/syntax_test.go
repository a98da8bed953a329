// SPDX-License-Identifier: Apache-2.0

package yamlerror

import (
	"strings"
	"testing"
)

// Each text is shown with its line ends; the line that is wrong ends in the mark, which is taken
// out.
func TestSyntaxFindsTheLine(t *testing.T) {
	const mark = " <<<"
	above := "top:\n  list: [a,\n    b]\n  map: {a: b,\n    c: d}\n  text: |\n    {\n  quoted: \"a\n    b\"\n"
	for name, text := range map[string]string{
		"an unclosed mapping":                     "a: 1\nb: {x: 1 <<<\nc: 2\n",
		"an unclosed mapping at the end":          "a: 1\nb: {x: 1 <<<\n",
		"an unclosed mapping after a comma":       "a: 1\nb: {x: 1, <<<\n",
		"an unclosed mapping around another":      "b: {x: {y: z} <<<\nc: 2\n",
		"an unclosed mapping of several lines":    "b: {x: 1, <<<\n    y: 2\nc: 2\n",
		"an unclosed list":                        "b: [x, y <<<\nc: 2\n",
		"an unclosed list before a list":          "b: [x, y <<<\nc:\n  - d\n",
		"an unclosed list before a template":      "b: [x, y <<<\nc: |\n  d\n",
		"a bracket too many":                      "b: {x: y}} <<<\nc: d\n",
		"an unknown anchor":                       "a: 1\nb:\n  c: *none <<<\n  d: e\n",
		"an unknown anchor in a list":             "a: 1\nb:\n  - c\n  - *none <<<\n  - d\n",
		"an unknown anchor below its name":        "a: 1\nb: |\n  *none\nc: *none <<<\nd: e\n",
		"an anchor that is defined below":         "a: *later <<<\nb: &later c\n",
		"an indentation that fits nothing":        "a:\n  b:\n    c: d\n   e: f <<<\ng: h\n",
		"a key that is indented too far":          "a:\n  b: c\n    d: e <<<\n",
		"a list in a mapping":                     "a: b\n- c <<<\nd: e\n",
		"a key in a list":                         "a:\n  - b\n  c: d <<<\n",
		"a tab":                                   "a:\n  b: c\n\td: e <<<\nf: g\n",
		"a quote that is not closed":              "a: b\nc: \"d <<<\ne: f\n",
		"a text behind a quote":                   "a: b\nc: 'd' e <<<\ne: f\n",
		"a word without a colon":                  "a: b\nc <<<\nd: e\n",
		"a mapping on one line":                   "a: b\nc: d: e <<<\nf: g\n",
		"a character that starts nothing":         "a: b\nc: @d <<<\n",
		"a control character":                     "a: b\nc: \x01 <<<\nd: e\n",
		"bytes that are no UTF-8":                 "a: b\nc: \xff <<<\nd: e\n",
		"an unknown escape":                       "a: b\nc: \"\\q\" <<<\n",
		"a tag without a handle":                  "a: b\nc: !x!y z <<<\nd: e\n",
		"the first line":                          "a: {x: 1 <<<\nb: 2\n",
		"a closing bracket alone":                 "a: b\nc: } <<<\nd: e\n",
		"an error in a mapping of several lines":  "b: {\n  x: y,\n  z: @a <<<\n  }\n",
		"an unclosed mapping with a missing line": "b:\n  - {x: y <<<\n  - {x: z}\n",
	} {
		for _, text := range []string{text, above + text, strings.ReplaceAll(above+text, "\n", "\r\n"),
			"# größe\n\n---\n" + text} {
			before, _, _ := strings.Cut(text, mark)
			want := strings.Count(before, "\n") + 1
			text = strings.Replace(text, mark, "", 1)
			reason := parse(text)
			if reason == nil {
				t.Fatalf("%s: %q is YAML", name, text)
			}
			if line, words := Syntax(text, reason); line != want {
				t.Errorf("%s: line %d: %s (%v), want line %d of\n%s", name, line, words, reason, want, text)
			}
		}
	}
}

func TestSyntaxSearchesNoLargeText(t *testing.T) {
	text := "a: b\n" + strings.Repeat("# c\n", maxSearched/4) + "d: *e\n"
	if line, words := Syntax(text, parse(text)); line != 1 || words != "unknown anchor 'e' referenced" {
		t.Errorf("line %d: %s", line, words)
	}
}

// Brackets and stars in texts and comments are none of YAML's.
func TestColumnOfTheMistake(t *testing.T) {
	const open, anchor = "the mapping { } that begins here is not closed", "unknown anchor 'x' referenced"
	for line, c := range map[string]struct {
		words string
		want  int
	}{
		`a: {b: c`:                      {open, 4},
		`- {b: {c: d}`:                  {open, 3},
		`größe: {b: [1, 2]`:             {open, 8},
		`- {name: a, value: "{x"`:       {open, 3},
		`- {name: a, value: '[x'`:       {open, 3},
		`- {name: a, value: "\"{x"`:     {open, 3},
		`- {name: a, value: 'it''s {x'`: {open, 3},
		`- {name: "a{\\", value: {b`:    {open, 25},
		`- {name: it's, value: {b: c`:   {open, 23},
		`- {"a":"b{", "c":"d"`:          {open, 3},
		`a: {b: c # {d`:                 {open, 4},
		`a: {b: c#d, e: {f`:             {open, 16},
		`a: b}`:                         {open, 0},
		`a: *x`:                         {anchor, 4},
		`a: [*xy, *x]`:                  {anchor, 10},
		`a: ["*xy", *x]`:                {anchor, 12},
		`a: b`:                          {anchor, 0},
	} {
		if got := Column(line, c.words); got != c.want {
			t.Errorf("%s: column %d, want %d", line, got, c.want)
		}
	}
}
