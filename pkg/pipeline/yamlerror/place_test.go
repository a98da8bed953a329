// SPDX-License-Identifier: Apache-2.0

package yamlerror

import (
	"fmt"
	"strings"
	"testing"
)

// Each value that is looked for is written as HERE, so that its place is where the text has it.
func TestFind(t *testing.T) {
	spec := func(keys ...any) Path { return append(Path{"spec"}, keys...) }
	for name, c := range map[string]struct {
		text string
		path Path
	}{
		"a value":                         {"a: b\nspec:\n  c: HERE\n", spec("c")},
		"in a list":                       {"spec:\n  - x\n  - {y: HERE}\n", spec(1, "y")},
		"in a list on one line":           {"spec: [x, {y: HERE}]\n", spec(1, "y")},
		"behind letters of several bytes": {"spec: {größe: {日本語: HERE}}\n", spec("größe", "日本語")},
		"with a tab in front":             {"spec:\t{c:\tHERE}\n", spec("c")},
		"with Windows line ends":          {"a: b\r\nspec:\r\n  c: HERE\r\n", spec("c")},
		"behind a comment":                {"# x\n\nspec: # y\n\n  # z\n  c: HERE\n", spec("c")},
		"behind a block":                  {"a: |\n  spec:\n    c: no\nspec:\n  c: HERE\n", spec("c")},
		"below a separator":               {"--- # x\nspec: {c: HERE}\n", spec("c")},
		"a quoted text":                   {"spec: {\"c\": HERE}\n", spec("c")},
		"the last of equal keys":          {"spec: {c: no, c: HERE}\n", spec("c")},
		"an alias":                        {"a: &x HERE\nspec: {c: *x}\n", spec("c")},
		"in an alias":                     {"a: &x {d: HERE}\nspec: {c: *x}\n", spec("c", "d")},
		"in a merged mapping":             {"a: &x {c: HERE}\nspec: {<<: *x}\n", spec("c")},
		"replaced by a merged mapping":    {"a: &x {c: HERE}\nspec: {c: no, <<: *x}\n", spec("c")},
		"replacing a merged mapping":      {"a: &x {c: no}\nspec: {<<: *x, c: HERE}\n", spec("c")},
		"in a list of mappings":           {"spec: {<<: [{d: e}, {c: HERE}, {c: no}]}\n", spec("c")},
		"in a merge of a merge":           {"a: &x {c: HERE}\nb: &y {<<: *x}\nspec: {<<: *y}\n", spec("c")},
		"a merge of itself":               {"spec: &x {<<: *x, c: HERE}\n", spec("c")},
		"no value":                        {"spec:\n  HERE:\n  d: e\n", spec("HERE")},
		"not there":                       {"spec: {d: &a {HERE: e}}\n", spec("d", "c", 3, "x")},
		"an index that is not there":      {"spec: {d: &a [HERE]}\n", spec("d", 3, "x")},
	} {
		text, column := c.text, 0
		if strings.Contains(c.text, "&a ") { // the value has an anchor, or its first part is looked for
			text = strings.Replace(text, "&a ", "", 1)
			column = -1 // of the bracket
		}
		before, _, _ := strings.Cut(text, "HERE")
		line := strings.Count(before, "\n") + 1
		column += len([]rune(before[strings.LastIndex(before, "\n")+1:])) + 1
		if strings.Contains(text, "&x HERE") { // a value begins with its anchor
			column -= len("&x ")
		}
		if gotLine, gotColumn := Find(text, c.path); gotLine != line || gotColumn != column {
			t.Errorf("%s: %d:%d, want %d:%d", name, gotLine, gotColumn, line, column)
		}
	}
	if line, column := Find("a: {", Path{"a"}); line != 0 || column != 0 {
		t.Errorf("no YAML: %d:%d", line, column)
	}
}

func TestPathString(t *testing.T) {
	path := Path{"spec", "tasks", 2, "annotations", "example.com/x", "y"}
	if got, want := fmt.Sprint(path), "spec.tasks[2].annotations[example.com/x].y"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestOffsetAndRowColumnAreOneAnothersInverse(t *testing.T) {
	const text = "größe\n\nb: 日本\n"
	for offset := range text {
		row, column := RowColumn(text, offset)
		if got := Offset(text, row, column); got != offset {
			t.Errorf("%d is %d:%d, and that is %d", offset, row, column, got)
		}
	}
	if got := Offset(text, 3, 5); text[got:] != "本\n" {
		t.Errorf("3:5 is %q", text[got:])
	}
	if Offset(text, 9, 1) != len(text) || Offset("a", 1, 9) != 1 || Offset("", 1, 1) != 0 {
		t.Error("a place behind the end is not the end")
	}
}
