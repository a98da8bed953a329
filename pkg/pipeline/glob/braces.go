// SPDX-License-Identifier: Apache-2.0

package glob

// maxAlternatives bounds what the braces of one pattern stand for together.
const maxAlternatives = 128

// spellOut returns the patterns without braces that a pattern with braces stands for: a{b,c{d,e}}
// is ab, acd and ace. It is false when there are more than maxAlternatives. The pattern is one that
// compiles.
func spellOut(pattern string) ([]string, bool) {
	alternatives, _, ok := spellSequence(pattern, false)
	return alternatives, ok
}

// spellSequence reads up to the end of the text or, within braces, up to the comma or brace that
// ends an alternative. It returns what was read spelt out, and the rest of the text from that
// character on.
func spellSequence(text string, within bool) (spelt []string, rest string, ok bool) {
	spelt = []string{""}
	for text != "" {
		if within && (text[0] == ',' || text[0] == '}') {
			return spelt, text, true
		}
		parts := []string{text[:literal(text)]}
		text = text[len(parts[0]):]
		if parts[0] == "{" {
			if parts, text, ok = spellBraces(text); !ok {
				return nil, "", false
			}
		}
		if len(spelt)*len(parts) > maxAlternatives {
			return nil, "", false
		}
		spelt = product(spelt, parts)
	}
	return spelt, "", true
}

// spellBraces reads the alternatives after an opening brace, and the closing one.
func spellBraces(text string) (spelt []string, rest string, ok bool) {
	for text != "" {
		parts, rest, ok := spellSequence(text, true)
		if !ok || len(spelt)+len(parts) > maxAlternatives {
			return nil, "", false
		}
		spelt = append(spelt, parts...)
		if rest == "" {
			return spelt, "", true
		}
		text = rest[1:]
		if rest[0] == '}' {
			return spelt, text, true
		}
	}
	return spelt, "", true
}

// literal is the length of the first element of a pattern: an escaped character, a class or one
// byte.
func literal(text string) int {
	if text[0] == '\\' && len(text) > 1 {
		return 2
	}
	if text[0] != '[' {
		return 1
	}
	for i := 1; i < len(text); i++ {
		if text[i] == '\\' {
			i++
			continue
		}
		if text[i] == ']' {
			return i + 1
		}
	}
	return len(text)
}

// product is every left followed by every right.
func product(left, right []string) []string {
	joined := make([]string, 0, len(left)*len(right))
	for _, l := range left {
		for _, r := range right {
			joined = append(joined, l+r)
		}
	}
	return joined
}
