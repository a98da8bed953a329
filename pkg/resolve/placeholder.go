// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
)

// placeholder is a template variable (spec/compatibility.md 3.11).
var placeholder = regexp.MustCompile(`{{([^}]{2,})}}`)

// maskable is a placeholder that reads the same inside and outside of YAML's quotes, so that it can be hidden from the
// parser wherever it stands. Others are found in the parsed strings only.
var maskable = regexp.MustCompile(`{{[^{}"'\\#\r\n]{2,}}}`)

// masks are the placeholders of one document that were replaced by words.
type masks struct {
	// word matches a replacement; its group is the index into originals.
	word      *regexp.Regexp
	mark      string
	originals []string
}

// mask replaces placeholders by words that YAML reads as parts of a scalar wherever they stand. The words contain a
// digest of the text, which the text cannot contain.
func mask(text string) (string, masks) {
	if !strings.Contains(text, "{{") {
		return text, masks{}
	}
	digest := sha256.Sum256([]byte(text))
	m := masks{mark: "placeholder" + hex.EncodeToString(digest[:8]) + "x"}
	m.word = regexp.MustCompile(m.mark + `([0-9]+)z`)
	hidden := maskable.ReplaceAllStringFunc(text, func(original string) string {
		m.originals = append(m.originals, original)
		return m.mark + strconv.Itoa(len(m.originals)-1) + "z"
	})
	return hidden, m
}

// restore puts the placeholders back, exactly as the author wrote them.
func (m masks) restore(s string) string {
	if len(m.originals) == 0 || !strings.Contains(s, m.mark) {
		return s
	}
	return m.word.ReplaceAllStringFunc(s, func(word string) string {
		i, err := strconv.Atoi(m.word.FindStringSubmatch(word)[1])
		if err != nil || i >= len(m.originals) {
			return word
		}
		return m.originals[i]
	})
}

// expander replaces placeholders by values in the strings of a tree. A value is placed once and never read again, so it
// can bring neither structure nor placeholders of its own.
type expander struct {
	vars map[string]string
	// left is how many bytes may still be produced.
	left int
	// collision is the first key that became equal to another one.
	collision string
}

func newExpander(vars map[string]string) *expander {
	return &expander{vars: vars, left: maxRendered}
}

// text replaces the known placeholders of a string; unknown ones stay. When the budget is used up it stops replacing.
func (x *expander) text(s string) string {
	if !strings.Contains(s, "{{") {
		return s
	}
	var b strings.Builder
	done := 0
	for _, at := range placeholder.FindAllStringSubmatchIndex(s, -1) {
		value, known := x.vars[strings.TrimSpace(s[at[2]:at[3]])]
		if !known {
			continue
		}
		value = strings.ToValidUTF8(value, "\ufffd") // JSON, and so the API server, has no other text.
		x.left -= len(value)
		if x.left < 0 {
			break
		}
		b.WriteString(s[done:at[0]])
		b.WriteString(value)
		done = at[1]
	}
	b.WriteString(s[done:])
	return b.String()
}

// value returns a copy of a tree with its strings and keys replaced.
func (x *expander) value(v any) any {
	switch v := v.(type) {
	case string:
		return x.text(v)
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = x.value(item)
		}
		return list
	case map[string]any:
		return x.mapping(v)
	}
	return v
}

func (x *expander) mapping(v map[string]any) map[string]any {
	mapping := make(map[string]any, len(v))
	for key, item := range v {
		replaced := x.text(key)
		if _, found := mapping[replaced]; found && (x.collision == "" || replaced < x.collision) {
			x.collision = replaced
		}
		mapping[replaced] = x.value(item)
	}
	return mapping
}
