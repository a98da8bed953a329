// SPDX-License-Identifier: Apache-2.0

package template

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

const (
	markerPrefix = "plumbline-secret-"
	// hidden stands for a secret in texts for people.
	hidden = "***"
	// minSecret is the length of the shortest value that is removed from texts, in bytes. Shorter
	// values are no secrets, and they are parts of many words. minLine is the same for one line, or
	// the beginning, of a longer value.
	minSecret = 4
	ellipsis  = "…"
	minLine   = 8
	// maxPlaced limits the values of secrets in one event, in bytes. A Secret holds 1 MiB.
	maxPlaced = 512 << 10
)

var marker = regexp.MustCompile(markerPrefix + `[0-9a-f]{32}`)

// conceal returns the marker of a secret text. path distinguishes the texts of one value. Equal
// placeholders of an event have equal markers, whatever the secret is.
func (s *Scope) conceal(r result, text, path string) string {
	identity := []string{s.facts.Key, r.name, path}
	if r.own {
		for _, name := range slices.Sorted(maps.Keys(s.own)) {
			identity = append(identity, name, s.own[name])
		}
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "%q", identity))
	m := markerPrefix + hex.EncodeToString(hash[:16])
	if _, again := s.placed[m]; !again {
		s.size += len(text)
	}
	s.placed[m] = text
	return m
}

// hasText reports whether a value may contain a secret. Numbers and booleans are no secrets: they
// occur everywhere.
func hasText(value any) bool {
	switch value.(type) {
	case nil, bool, float64:
		return false
	}
	return true
}

// concealAll returns a value with a marker in place of each string.
func (s *Scope) concealAll(r result, value any, path string) any {
	switch value := value.(type) {
	case string:
		return s.conceal(r, value, path)
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = s.concealAll(r, item, fmt.Sprintf("%s/%d", path, i))
		}
		return list
	case map[string]any:
		mapping := make(map[string]any, len(value))
		for key, item := range value {
			at := path + "/" + strconv.Quote(key)
			mapping[s.conceal(r, key, at+" key")] = s.concealAll(r, item, at)
		}
		return mapping
	}
	return value
}

// Secrets returns the values of the markers that were placed so far.
func (s *Scope) Secrets() map[string]string {
	return maps.Clone(s.placed)
}

// fits refuses values of secrets that exceed one Secret, because the plan stores them in one.
func (s *Scope) fits() error {
	if s.size > maxPlaced {
		return fault.Invalidf(reasonTooLarge,
			"the values of secrets in the pipelines of this event have more than %d bytes together", maxPlaced)
	}
	return nil
}

// Fill replaces the markers in marshalled JSON by the secrets. Markers that it does not know stay.
func Fill(data []byte, secrets map[string]string) []byte {
	if len(secrets) == 0 {
		return data
	}
	return marker.ReplaceAllFunc(data, func(m []byte) []byte {
		value, known := secrets[string(m)]
		if !known {
			return m
		}
		return []byte(inJSON(value))
	})
}

// Held reports whether a text contains one of the markers.
func Held(text string, secrets map[string]string) bool {
	for _, m := range marker.FindAllString(text, -1) {
		if _, known := secrets[m]; known {
			return true
		}
	}
	return false
}

// Mask removes secrets from a text for people: markers, and values as they are, quoted, in JSON and
// in URLs. Of values with several lines it removes the single lines, too. Values of less than four
// bytes stay, because they cannot be distinguished from words.
func Mask(text string, secrets map[string]string) string {
	if len(secrets) == 0 {
		return text
	}
	return mask(text, slices.Collect(maps.Keys(secrets)), slices.Collect(maps.Values(secrets)))
}

func mask(text string, markers, values []string) string {
	all := slices.Clone(markers)
	for _, value := range values {
		all = append(all, Forms(value)...)
	}
	// At one place the longest value is removed, because one value may start with another one.
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(all))
	for _, part := range all {
		pairs = append(pairs, part, hidden)
	}
	text = strings.NewReplacer(pairs...).Replace(text)
	for _, part := range all {
		text = maskCut(text, part)
	}
	return text
}

// Forms returns the texts in which people recognise a secret value: as it is, quoted, in JSON and
// in URLs, and each of its longer lines. No form has less than four bytes.
func Forms(value string) (forms []string) {
	parts := []string{value, strings.TrimSpace(value)}
	for line := range strings.Lines(value) {
		if line = strings.TrimSpace(line); len(line) >= minLine {
			parts = append(parts, line)
		}
	}
	for _, part := range parts {
		if len(part) < minSecret {
			continue
		}
		quoted := strconv.Quote(part)
		forms = append(forms, part, quoted[1:len(quoted)-1], inJSON(part), url.QueryEscape(part), url.PathEscape(part))
	}
	return forms
}

// maskCut removes the beginning of a value where the text was cut within the value. An ellipsis
// shows where.
func maskCut(text, value string) string {
	if len(value) < minLine || !strings.Contains(text, ellipsis) {
		return text
	}
	for from := 0; ; {
		i := strings.Index(text[from:], value[:minLine])
		if i < 0 {
			return text
		}
		start := from + i
		from = start + minLine
		for n := minLine; n <= len(value) && start+n <= len(text) && text[start+n-1] == value[n-1]; n++ {
			if strings.HasPrefix(strings.TrimPrefix(text[start+n:], " "), ellipsis) {
				text = text[:start] + hidden + text[start+n:]
				from = start + len(hidden)
				break
			}
		}
	}
}

// inJSON returns a text as it is written between the quotes of a JSON string.
func inJSON(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		return "" // a string always marshals
	}
	return string(data[1 : len(data)-1])
}
