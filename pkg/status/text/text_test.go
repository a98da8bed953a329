// SPDX-License-Identifier: Apache-2.0

package text

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestOneLineCountsUnitsOfService(t *testing.T) {
	const mark = " (cut)"
	for name, unit := range map[string]string{"one byte": "x", "three bytes": "世", "four bytes": "🚀", "not UTF-8": "\xff",
		"NUL": "\x00", "fences": "\n```\n"} {
		for _, n := range []int{0, 1, 19, 20, 21, 100} {
			s := strings.Repeat(unit, n)
			for counted, start := range map[string]Start{"bytes": Bytes, "runes": Runes} {
				size := map[string]func(string) int{
					"bytes": func(s string) int { return len(s) }, "runes": utf8.RuneCountInString,
				}[counted]
				line, body := OneLine(s, 20, start), Markdown(s, 20, mark, start)
				if size(line) > 20 || size(body) > 20 || !utf8.ValidString(line+body) || strings.Contains(line, "\n") {
					t.Errorf("%s, %d times, in %s: %q, %q", name, n, counted, line, body)
				}
				if cut := size(Clean(s)) > 20; cut != strings.HasSuffix(body, mark) {
					t.Errorf("%s, %d times, in %s: %q does not say whether it was cut", name, n, counted, body)
				}
			}
		}
	}
}

func TestMarkdownClosesCutFence(t *testing.T) {
	got := Markdown("```\n"+strings.Repeat("x", 100), 40, "\ncut", Bytes)
	if strings.Count(got, "```") != 2 || !strings.HasSuffix(got, "```\ncut") {
		t.Errorf("got %q", got)
	}
}

func TestFirstLineNeverSplitsCharacter(t *testing.T) {
	if got, want := FirstLine("\n "+strings.Repeat("世", 400)+"\nbody", 1024), strings.Repeat("世", 341); got != want {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
}
