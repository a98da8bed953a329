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
	// minSecret is the shortest value that is taken out of texts, in bytes: shorter ones are no
	// secrets and parts of many words. minLine is the same for one line, or the beginning, of a
	// longer value.
	minSecret = 4
	ellipsis  = "…"
	minLine   = 8
	// maxPlaced bounds the values of secrets in one event, in bytes. A Secret holds 1 MiB.
	maxPlaced = 512 << 10
)

var marker = regexp.MustCompile(markerPrefix + `[0-9a-f]{32}`)

// conceal returns the marker of a secret text. path tells the texts of one value apart. Equal
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

// hasText reports whether a value may hold a secret: numbers and booleans are none, and occur
// everywhere.
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

// Secrets returns the value of each marker that was placed so far.
func (s *Scope) Secrets() map[string]string {
	return maps.Clone(s.placed)
}

// fits refuses more values of secrets than one Secret, which the plan keeps them in, can hold.
func (s *Scope) fits() error {
	if s.size > maxPlaced {
		return fault.Invalidf(
			reasonTooLarge,
			"the values of secrets in the pipelines of this event have more than %d bytes together",
			maxPlaced,
		)
	}
	return nil
}

// Fill puts the secrets into marshalled JSON, in place of their markers. Markers it does not know
// stay.
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

// Held reports whether a text holds one of the markers.
func Held(text string, secrets map[string]string) bool {
	for _, m := range marker.FindAllString(text, -1) {
		if _, known := secrets[m]; known {
			return true
		}
	}
	return false
}

// Mask takes secrets out of a text for people: markers, values as they are, quoted, in JSON and in
// URLs, and the lines of values that have several. Values of less than four bytes stay: they cannot
// be told from words.
func Mask(text string, secrets map[string]string) string {
	if len(secrets) == 0 {
		return text
	}
	return mask(text, slices.Collect(maps.Keys(secrets)), slices.Collect(maps.Values(secrets)))
}

func mask(text string, markers, values []string) string {
	all := slices.Clone(markers)
	for _, value := range values {
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
			all = append(all, part, quoted[1:len(quoted)-1], inJSON(part), url.QueryEscape(part), url.PathEscape(part))
		}
	}
	// At one place the longest is taken: a value may begin with another one.
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

// maskCut takes out the beginning of a value where a text was cut within it, which an ellipsis
// shows.
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

// inJSON is a text as it stands between the quotes of a JSON string.
func inJSON(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		return "" // a string always marshals
	}
	return string(data[1 : len(data)-1])
}
