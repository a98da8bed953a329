// SPDX-License-Identifier: Apache-2.0

package steplogs

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"index/suffixarray"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

const (
	// hidden stands for a secret.
	hidden = "*****"
	// minSecret is the length of the shortest value that is masked, in bytes.
	minSecret = 4
	// minInner is the same for a text inside a value that is JSON.
	minInner = 8
	// maxSecrets bounds the values that are masked, in bytes.
	maxSecrets = 1 << 20
)

// mask sets the texts of logs.
func (r *Reader) mask(found *run, values []string, texts [][]byte, logs []v1alpha1.StepLog) {
	r.masking.Lock()
	defer r.masking.Unlock()
	masker := newMasker(values)
	for i := range logs {
		log, text := &logs[i], texts[i]
		if log.Missing != nil {
			continue
		}
		lines := linesOf(masker.mask(text, len(text) == window))
		switch log.Text = lastLines(lines, found.Lines, found.Bytes(len(logs))); {
		case log.Text == "":
			log.Missing = &v1alpha1.MissingLog{Reason: v1alpha1.LogEmpty}
		case strings.HasPrefix(log.Text, gone):
			log.Text, log.Missing = "", &v1alpha1.MissingLog{Reason: v1alpha1.LogGone}
		default:
			log.Sources = sources(lines, found.Detection)
		}
	}
}

// masker removes secret values from logs.
type masker struct {
	// forms are what is searched in each view of a log.
	forms [2][][]byte
}

// views are those of a log, and of the values, in the order of masker.forms.
func views() [2]func(text []byte, placed bool) *view {
	return [2]func(text []byte, placed bool) *view{joined, decoded}
}

// newMasker returns a masker of values. It masks each value in the forms of template.Forms and in
// base64, wherever it begins in what was encoded. Of a value that is JSON it masks the texts in it,
// too, such as the password of a registry.
func newMasker(values []string) *masker {
	m, known := &masker{}, [2]map[string]bool{{}, {}}
	add := func(i int, form []byte) {
		if len(form) >= minSecret && !known[i][string(form)] {
			known[i][string(form)] = true
			m.forms[i] = append(m.forms[i], form)
		}
	}
	for _, value := range values {
		for _, part := range append(inner(value), value) {
			for _, form := range template.Forms(part) {
				form := cleaned([]byte(form))
				for i, view := range views() {
					add(i, view(form, false).text)
				}
			}
			for _, form := range encoded(part) { // is the same in each view
				add(0, []byte(form))
				add(1, []byte(form))
			}
		}
	}
	return m
}

// encoded returns what is in base64 of a value whatever precedes and follows it. The characters at
// the edges depend on the neighbours, and tell less than a byte of the value.
func encoded(value string) (forms []string) {
	for _, v := range []string{value, strings.TrimSpace(value)} {
		if len(v) < minSecret {
			continue
		}
		forms = append(forms, base64.StdEncoding.EncodeToString([]byte(v)), base64.URLEncoding.EncodeToString([]byte(v)))
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			for before := range 3 {
				text := encoding.EncodeToString([]byte(strings.Repeat("\x00", before) + v))
				forms = append(forms, text[(before*8+5)/6:(before+len(v))*8/6])
			}
		}
	}
	return forms
}

// inner returns the longer texts in a value that is JSON, and what they are in base64.
func inner(value string) (texts []string) {
	var content any
	value = strings.TrimSpace(value)
	if !strings.HasPrefix(value, "{") || json.Unmarshal([]byte(value), &content) != nil {
		return nil
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, item := range v {
				walk(item)
			}
		case []any:
			for _, item := range v {
				walk(item)
			}
		case string:
			if len(v) < minInner {
				return
			}
			texts = append(texts, v)
			if plain, err := base64.StdEncoding.DecodeString(v); err == nil && len(plain) >= minInner {
				_, password, _ := strings.Cut(string(plain), ":")
				texts = append(texts, string(plain), password)
			}
		}
	}
	walk(content)
	return texts
}

// tokens are secrets that are recognised by their form: tokens of ServiceAccounts, which no Secret
// has, and tokens of Git services, of which a Secret may have had another one before.
var tokens = regexp.MustCompile(
	`eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}|\b(?:gh[opusr]_|github_pat_|glpat-)[\w.-]{16,}`,
)

// mask returns the text of the end of a log without the values, also where line breaks, spaces at
// them or colours divide a value, and where the text begins or ends within one. cut is true if the
// text may begin within a character or an escape sequence.
func (m *masker) mask(log []byte, cut bool) []byte {
	log = withoutOpenRune(log)
	if log = openEscape.ReplaceAll(log, nil); cut {
		log = restOfEscape.ReplaceAll(withoutRest(log), nil)
	}
	text := cleaned(log)
	hits := make([]int, len(text)+1) // how many values begin minus how many end at each byte
	cover := func(from, to int) {
		hits[from]++
		hits[to]--
	}
	for _, token := range tokens.FindAllIndex(text, -1) {
		cover(token[0], token[1])
	}
	for i, view := range views() {
		v := view(text, true)
		v.search(m.forms[i], func(from, to int) { cover(v.at[from], v.end[to-1]) })
		for _, token := range tokens.FindAllIndex(v.text, -1) {
			if from := v.at[token[0]]; hits[from] == 0 { // more than one line has it
				cover(from, v.end[token[1]-1])
			}
		}
	}
	return without(text, hits)
}

// search calls found for each place where one of the forms is, or the beginning or end of one at an
// edge.
func (v *view) search(forms [][]byte, found func(from, to int)) {
	index, n := suffixarray.New(v.text), len(v.text)
	for _, form := range forms {
		for _, at := range index.Lookup(form, -1) {
			found(at, at+len(form))
		}
		if k := overlap(form, v.text); k >= minSecret {
			found(0, k)
		}
		if k := overlap(v.text, form); k >= minSecret {
			found(n-k, n)
		}
		if len(form) > n && n >= minSecret && bytes.Contains(form, v.text) {
			found(0, n)
		}
	}
}

// without replaces the bytes that are in at least one value.
func without(text []byte, hits []int) []byte {
	out, depth := make([]byte, 0, len(text)), 0
	for i, b := range text {
		before := depth
		switch depth += hits[i]; {
		case depth == 0:
			out = append(out, b)
		case before == 0:
			out = append(out, hidden...)
		}
	}
	return out
}

// overlap returns how many bytes at the end of a are the beginning of b: at most one less than the
// shorter of them has.
func overlap(a, b []byte) int {
	n := min(len(a), len(b)) - 1
	if n < minSecret {
		return 0
	}
	a, b = a[len(a)-n:], b[:n]
	fail, k := make([]int, n), 0
	for i := 1; i < n; i++ {
		for k > 0 && b[i] != b[k] {
			k = fail[k-1]
		}
		if b[i] == b[k] {
			k++
		}
		fail[i] = k
	}
	k = 0
	for _, c := range a {
		for k > 0 && (k == n || c != b[k]) {
			k = fail[k-1]
		}
		if c == b[k] {
			k++
		}
	}
	return k
}

// escapes are ANSI escape sequences: CSI, OSC and other strings, those that select a character set,
// and those of two characters.
var escapes = regexp.MustCompile(
	`\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]+[0-~]|[0-Z\\^_\x60-~])`)

var (
	openEscape   = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*)?$`)
	restOfEscape = regexp.MustCompile(`^(?:[^\x07\x1b\r\n]{0,200}\x07|\[?[0-?]*[ -/]*[@-~])`)
)

// withoutRest returns a text without the rest of a character that it begins with.
func withoutRest(text []byte) []byte {
	for n := 0; n < utf8.UTFMax-1 && len(text) > 0 && !utf8.RuneStart(text[0]); n++ {
		text = text[1:]
	}
	return text
}

// withoutOpenRune returns a text without the beginning of a character that it ends with: the
// program was killed as it wrote.
func withoutOpenRune(text []byte) []byte {
	for range utf8.UTFMax - 1 {
		if r, n := utf8.DecodeLastRune(text); r != utf8.RuneError || n != 1 {
			break
		}
		text = text[:len(text)-1]
	}
	return text
}

// cleaned returns a text without escape sequences and characters that no user sees. Bytes that are
// no UTF-8 stay.
func cleaned(text []byte) []byte {
	text = escapes.ReplaceAll(text, nil)
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if r == utf8.RuneError && n == 1 || r == '\n' || r == '\r' || r == '\t' || unicode.IsPrint(r) {
			out = append(out, text[:n]...)
		}
		text = text[n:]
	}
	return out
}

// size returns how many bytes values have.
func size(values []string) (bytes int) {
	for _, value := range values {
		bytes += len(value)
	}
	return bytes
}
