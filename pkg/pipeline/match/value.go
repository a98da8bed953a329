// SPDX-License-Identifier: Apache-2.0

package match

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

const (
	// maxItems limits the entries of one list, so that one pipeline cannot keep a worker busy.
	maxItems = 256
	// maxShown is how many bytes of an author's value a reason shows. Reasons are stored in
	// GitEvent.status.
	maxShown = 256
)

// valueSyntax is a list in brackets, or one word without brackets.
var valueSyntax = regexp.MustCompile(`^\[(.*)\]$|^[^[\]\s]*$`)

// list reads an annotation's value. In brackets a comma separates entries, and &#44; stands for a
// comma within one.
func list(annotation, value string) ([]string, error) {
	value = strings.TrimSpace(value)
	groups := valueSyntax.FindStringSubmatch(value)
	if groups == nil {
		return nil, fault.Invalidf(reasonBadAnnotation,
			"annotation %s has the value %q, which is in the wrong format: write one word, or a list like [main, release-*]",
			annotation, shorten(value))
	}
	items := []string{value}
	if strings.HasPrefix(value, "[") {
		items = strings.Split(groups[1], ",")
	}
	for i, item := range items {
		items[i] = strings.ReplaceAll(strings.TrimSpace(item), "&#44;", ",")
	}
	if items[0] == "" {
		return nil, fault.Invalidf(
			reasonBadAnnotation,
			"annotation %s has an empty value: name at least one entry, or remove it",
			annotation,
		)
	}
	if len(items) > maxItems {
		return nil, fault.Invalidf(
			reasonBadAnnotation,
			"annotation %s lists %d entries, at most %d are read",
			annotation,
			len(items),
			maxItems,
		)
	}
	return items, nil
}

// quotes are the characters that authors put around entries. They are not part of the syntax.
const quotes = "'\"`‘’“”"

// hint returns what to add to the reason for a value that does not match. It says that quotes are
// part of an entry, or how to write a list instead of one word with commas.
func hint(annotations map[string]string, name string) string {
	value := strings.TrimSpace(annotations[name])
	inner, isList := strings.CutPrefix(value, "[")
	entries := outsideBraces(value)
	if isList {
		entries = strings.Split(strings.TrimSuffix(inner, "]"), ",")
	}
	quoted := false
	for i, entry := range entries {
		entry = strings.TrimSpace(entry)
		bare := strings.TrimSpace(strings.Trim(entry, quotes))
		quoted = quoted || bare != entry
		entries[i] = strings.ReplaceAll(bare, ",", "&#44;")
	}
	switch {
	case quoted:
		return fmt.Sprintf("; the quotes within %s are part of its entries: write %s", short(name), show(entries))
	case isList || len(entries) < 2:
		return ""
	}
	return fmt.Sprintf("; %s looks like a list without brackets: write %s", short(name), show(entries))
}

// eventHint is hint for on-event, and says which entry is no event.
func eventHint(annotations map[string]string, entries []string) string {
	if said := hint(annotations, pipelinesascode.OnEvent); said != "" {
		return said
	}
	if said := noEvent(entries); said != "" {
		return "; " + said
	}
	return ""
}

// outsideBraces cuts a word at its commas, except those between braces.
func outsideBraces(word string) []string {
	var entries []string
	depth, start := 0, 0
	for i, c := range word {
		switch {
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == ',' && depth <= 0:
			entries, start = append(entries, word[start:i]), i+1
		}
	}
	return append(entries, word[start:])
}

// show writes a list the way an author would.
func show(items []string) string {
	return "[" + shorten(strings.Join(items, ", ")) + "]"
}

// shorten cuts a text to maxShown bytes.
func shorten(s string) string { return text.Shorten(s, maxShown, text.Bytes) }
