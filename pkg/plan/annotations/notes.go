// SPDX-License-Identifier: Apache-2.0

package annotations

import (
	"fmt"
	"strings"

	"github.com/plumbline-ci/plumbline/pkg/pipeline/match"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/resolve"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

const (
	// maxNotes is how many things a note names, and maxShown how many characters of one it shows.
	maxNotes = 3
	maxShown = 64
)

// Dropped returns a note for the author about fields that do not exist, empty if there are none.
func Dropped(definition resolve.Definition, unknown []resolve.Field) string {
	if len(unknown) == 0 {
		return ""
	}
	names := make([]string, len(unknown))
	for i, field := range unknown {
		names[i] = text.Shorten(field.Path, maxShown, text.Runes)
	}
	all := text.Some(names, maxNotes, ", ")
	return fmt.Sprintf("Fields that do not exist were dropped: %s (%s).", all, definition.File)
}

// Idle returns a note for the author about annotations and placeholders that have no effect, empty
// if there are none.
func Idle(definition resolve.Definition, misspelt []template.Misspelling) string {
	var all []string
	for _, finding := range match.Lint(definition.Annotations) {
		all = append(all, text.Shorten(finding.Says, 4*maxShown, text.Runes))
	}
	for _, name := range misspelt {
		all = append(all, name.Says())
	}
	if len(all) == 0 {
		return ""
	}
	note := "Without effect in " + definition.File + ":"
	for _, says := range all[:min(len(all), maxNotes)] {
		if note += " " + says; !strings.HasSuffix(says, "?") {
			note += "."
		}
	}
	return note
}
