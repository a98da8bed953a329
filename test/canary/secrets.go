// SPDX-License-Identifier: Apache-2.0

// Package canary looks for secrets in what people may read: logs, objects, metrics, what a Git
// service was told.
package canary

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Shortest is how many bytes a secret must have to be looked for. Shorter ones are found by chance:
// "x", or an App's id.
const Shortest = 12

// head is how many bytes of a needle are compared first. Every form of a secret of Shortest bytes
// has them.
const head = 8

// Secrets are what must be told nowhere. The zero value knows none. Its methods may be called from
// any goroutine.
type Secrets struct {
	mu      sync.RWMutex
	origins map[string][]string // by value
	needles map[uint64][]needle // by their first bytes
	filter  [1 << 20]bool       // hashes of those: most places of a text are passed with one look
}

// needle is one spelling of a secret.
type needle struct{ text, form, value string }

// Found is a secret that a text tells.
type Found struct {
	// Form is how: "as it is", "in base64" and so on.
	Form string
	// Origins are where the secret is kept, as they were added.
	Origins []string
}

// Add makes a value known that is kept at origin. Of a value with more than one line each line is a
// secret of its own, without the boundaries of PEM; what is shorter than Shortest is left out.
func (s *Secrets) Add(value, origin string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		if len(line) < Shortest || strings.HasPrefix(line, "-----") {
			continue
		}
		if _, known := s.origins[line]; !known {
			s.learn(line)
		}
		if !slices.Contains(s.origins[line], origin) {
			s.origins[line] = append(s.origins[line], origin)
		}
	}
}

// Len is how many secrets are known.
func (s *Secrets) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.origins)
}

func (s *Secrets) learn(value string) {
	if s.origins == nil {
		s.origins, s.needles = map[string][]string{}, map[uint64][]needle{}
	}
	seen := map[string]bool{}
	for _, n := range spellings(value) {
		if seen[n.text] {
			continue
		}
		seen[n.text] = true
		start := first(n.text)
		s.needles[start] = append(s.needles[start], n)
		s.filter[hash(start)] = true
	}
}

// spellings are the forms in which a secret is looked for.
func spellings(value string) []needle {
	all := []needle{
		{value, "as it is", value},
		{url.QueryEscape(value), "escaped for a query", value}, {url.PathEscape(value), "escaped for a path", value},
		{strings.TrimPrefix(url.UserPassword("", value).String(), ":"), "escaped for a user's password", value},
	}
	for _, outer := range []func(string) string{inJSON, quoted} {
		all = append(all, needle{outer(value), "in quotes", value}, needle{outer(inJSON(value)), "in quotes twice", value},
			needle{outer(quoted(value)), "in quotes twice", value})
	}
	for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			all = append(all, needle{inside(alphabet, value, before), "in base64", value})
		}
	}
	return all
}

// inJSON is a text as it stands between the quotes of a string that encoding/json wrote.
func inJSON(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err) // no string fails
	}
	return string(data[1 : len(data)-1])
}

// quoted is a text as it stands between the quotes of %q, and of a string that the logger wrote,
// which leaves & and < alone.
func quoted(text string) string {
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}

// inside is the part of a longer text's base64 that depends on the value alone, when 0, 1 or 2
// bytes more than a multiple of three stand before it.
func inside(alphabet *base64.Encoding, value string, before int) string {
	encoded := alphabet.EncodeToString([]byte(strings.Repeat("\x00", before) + value))
	from, to := (before*8+5)/6, (before+len(value))*8/6
	return encoded[from:to]
}

// Find returns the secrets that a text tells, each form once.
func (s *Secrets) Find(text string) (found []Found) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	seen := map[needle]bool{}
	for at := 0; at+head <= len(text); at++ {
		start := first(text[at:])
		if !s.filter[hash(start)] {
			continue
		}
		for _, n := range s.needles[start] {
			if strings.HasPrefix(text[at:], n.text) && !seen[n] {
				seen[n] = true
				found = append(found, Found{Form: n.form, Origins: slices.Clone(s.origins[n.value])})
			}
		}
	}
	return found
}

func first(text string) uint64 { return binary.LittleEndian.Uint64([]byte(text[:head])) }

// hash is Fibonacci hashing to the 20 bits of the filter.
func hash(start uint64) uint64 { return start * 0x9e3779b97f4a7c15 >> 44 }
