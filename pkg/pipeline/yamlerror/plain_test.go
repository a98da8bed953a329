// SPDX-License-Identifier: Apache-2.0

package yamlerror

import (
	"fmt"
	"strings"
	"testing"
)

// Each text has one mistake. The words say what to do, at the place of the mistake and not where
// the parser noticed it.
func TestSyntaxSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a: \"b\nc:\n  d: \"[e]\"\n":                    "1:4 " + openQuote,
		"a: 1\nb: 'x\nc: 'y'\n":                         "2:4 " + openQuote,
		"a: \"b\n":                                      "1:4 " + openQuote,
		"- a: 1\n  b: [\"x\", \"y]\n":                   "2:12 " + openQuote,
		"a: \"one\n  two\"\nb: \"c\n":                   "3:4 " + openQuote,
		"a: |\n  it is \"open\n  here\nb: 'c\nd: 'e'\n": "4:4 " + openQuote,
		"a: b\nc: 'd' e\n":                              "2:8 " + afterQuote,
		"a: \"b\" c: d\n":                               "1:8 " + afterQuote,
		"a:\n\tb: c\n":                                  "2:1 " + tab,
		"a:\n  b: 1\n\tc: d\n":                          "3:1 " + tab,
		"größe: \tx: y\n":                               "1:10 " + twoColons,
		"a: b: c\n":                                     "1:5 " + twoColons,
		"a: 'b: c': d\n":                                "1:10 ",
		"a: b\nc: @d\n":                                 "2:0 no value begins with this character: put quotes around the value",
		"a:\n  b: c\n    d: e\n":                        "3:0 no key is expected here: check the indentation of this line and of the one above",
		"a: b\n- c\n":                                   "2:0 a key is expected here: check the indentation of this line and of the one above",
		"- b\nc: d\n":                                   "2:0 an item of a list (- …) is expected here: check the indentation of this line",
		"a: b\nc\nd: e\n":                               "2:0 a key and a colon are expected here",
		"a: \"\\q\"\n":                                  "1:0 a backslash within double quotes",
	} {
		reason := parse(text)
		if reason == nil {
			t.Errorf("%q is YAML", text)
			continue
		}
		line, words := Syntax(text, reason)
		column := Column(strings.Split(text, "\n")[line-1], words)
		if got := fmt.Sprintf("%d:%d %s", line, column, words); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s (%v), want %s", text, got, reason, want)
		}
	}
}
