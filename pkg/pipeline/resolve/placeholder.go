// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

// onOneLine are placeholders that may be hidden from the parser wherever they stand.
var onOneLine = regexp.MustCompile(`{{[^{}\r\n]{2,}}}`)

// masks are the placeholders of one document that were replaced by words.
type masks struct {
	// mark begins each of the words; the index into originals and a z follow.
	mark      string
	originals []string
}

// mask replaces placeholders by words that YAML reads as parts of a scalar wherever they stand. The
// words contain a digest of the text, which the text cannot contain.
func mask(text string) (string, masks) {
	if !strings.Contains(text, "{{") {
		return text, masks{}
	}
	digest := sha256.Sum256([]byte(text))
	m := masks{mark: "placeholder" + hex.EncodeToString(digest[:8]) + "x"}
	hidden := onOneLine.ReplaceAllStringFunc(text, func(original string) string {
		if !maskable(original[2 : len(original)-2]) {
			return original
		}
		m.originals = append(m.originals, original)
		return m.mark + strconv.Itoa(len(m.originals)-1) + "z"
	})
	return hidden, m
}

// widthKept replaces the same placeholders as mask, by words of the same width, so that columns do
// not change.
func widthKept(text string) string {
	return onOneLine.ReplaceAllStringFunc(text, func(original string) string {
		if !maskable(original[2 : len(original)-2]) {
			return original
		}
		return strings.Repeat("x", utf8.RuneCountInString(original))
	})
}

// maskable reports whether a placeholder reads the same inside and outside of YAML's quotes. The
// quotes of an expression are its own, as in PaC, which reads placeholders before YAML. If they are
// escaped for YAML, the placeholder is found after YAML has been read.
func maskable(name string) bool {
	if !strings.ContainsAny(name, `"'\#`) {
		return true
	}
	if !template.IsExpression(name) {
		return false
	}
	return !strings.Contains(name, `\`) && !strings.Contains(name, `''`) || ownQuotes(name)
}

// ownQuotes reports whether every quote of an expression opens or closes a string of it. It is
// false for a backslash, as in body[\"x\"], for a quote that is not closed, and for a word that
// follows a closing quote.
func ownQuotes(expression string) bool {
	for i := 0; i < len(expression); i++ {
		switch expression[i] {
		case '\\':
			return false
		case '"', '\'':
			end := closing(expression, i)
			if end < 0 {
				return false
			}
			after := strings.TrimLeft(expression[end+1:], " \t")
			if after != "" && strings.ContainsAny(after[:1], wordStart) && !strings.HasPrefix(after, "in ") {
				return false
			}
			i = end
		}
	}
	return true
}

// wordStart are the characters that cannot follow a text in an expression.
const wordStart = `"'_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ`

// closing returns the index of the quote that ends the text which begins at start, or -1 if there
// is none.
func closing(expression string, start int) int {
	for i := start + 1; i < len(expression); i++ {
		switch expression[i] {
		case '\\':
			i++
		case expression[start]:
			return i
		}
	}
	return -1
}

// restore puts the placeholders back, exactly as the author wrote them.
func (m masks) restore(s string) string {
	if len(m.originals) == 0 || !strings.Contains(s, m.mark) {
		return s
	}
	var restored strings.Builder
	for {
		before, after, found := strings.Cut(s, m.mark)
		restored.WriteString(before)
		if !found {
			return restored.String()
		}
		index, rest, _ := strings.Cut(after, "z")
		i, err := strconv.ParseUint(index, 10, 32)
		if err != nil || int(i) >= len(m.originals) { // the parser has cut the word in a message
			restored.WriteString(m.mark)
			s = after
			continue
		}
		restored.WriteString(m.originals[i])
		s = rest
	}
}
