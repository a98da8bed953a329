// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/caret"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// WriteJSON prints one object.
func (r *Report) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}

// section is a part of a report for people.
type section struct {
	title string
	kind  Kind
}

func sections() []section {
	return []section{
		{"Blocks the move", Blocks}, {"Differs after the move", Differs}, {"Stays the same", Same},
		{"Not compared", NotCompared},
	}
}

// WriteText prints the report for people: the result first, then what is behind it. Things that say
// the same are one entry.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, line := range r.summary() {
		b.WriteString(line + "\n")
	}
	for _, s := range sections() {
		b.WriteString(r.section(s, "\n%s:\n", func(f Finding) string {
			text := "- " + sentence(f.Says) + "\n  " + count(f) + "\n"
			if f.Remedy != "" {
				text += "  To do: " + sentence(f.Remedy) + "\n"
			}
			if f.Page != "" {
				text += "  See " + f.Page + "\n"
			}
			return text
		}))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteMarkdown prints the report as Markdown.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# Move from Pipelines-as-Code to Plumbline\n\n")
	for _, line := range r.summary() {
		b.WriteString("* " + escape(line) + "\n")
	}
	for _, s := range sections() {
		b.WriteString(r.section(s, "\n## %s\n\n| what | where | to do |\n|---|---|---|\n", func(f Finding) string {
			todo := escape(sentence(f.Remedy))
			if f.Page != "" {
				todo = strings.TrimSpace(todo + " See " + f.Page + ".")
			}
			return fmt.Sprintf("| %s | %s | %s |\n", escape(sentence(f.Says)), escape(count(f)), todo)
		}))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// section returns the findings of one kind below a heading, nothing if there are none.
func (r *Report) section(s section, heading string, entry func(Finding) string) string {
	var b strings.Builder
	for _, f := range r.Findings {
		if f.Kind == s.kind {
			b.WriteString(entry(f))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return fmt.Sprintf(heading, s.title) + b.String()
}

// summary returns the result in a few sentences.
func (r *Report) summary() []string {
	var lines []string
	for _, i := range r.Installations {
		name := strings.TrimSpace("Pipelines-as-Code " + i.Version)
		lines = append(lines, fmt.Sprintf("%s: Deployment %s/%s.", name, i.Namespace, i.Deployment))
	}
	n := r.Repositories
	line := fmt.Sprintf("%d of %d Repositories can move as they are", n.Unchanged, n.Total)
	if differ := n.Total - n.Unchanged - n.Blocked; differ > 0 {
		line += fmt.Sprintf(", %d can move and something differs", differ)
	}
	if n.Blocked > 0 {
		line += fmt.Sprintf(", %d cannot move yet", n.Blocked)
	}
	lines = append(lines, line+".")
	if e := r.Events; e.Compared > 0 {
		lines = append(lines, fmt.Sprintf("Plumbline starts the same pipelines for %d of the %d events that were compared.",
			e.Equal, e.Compared))
	} else {
		lines = append(lines, "No events were compared.")
	}
	for _, right := range r.MissingRights {
		lines = append(lines, "Not everything was read: this account lacks the right to "+right+".")
	}
	return lines
}

// count returns how many objects a finding is about, with the first of them.
func count(f Finding) string {
	if len(f.Objects) == 1 {
		return caret.Plain(f.Objects[0])
	}
	return caret.Plain(fmt.Sprintf("%d: %s", len(f.Objects), text.Some(f.Objects, maxNamed, ", ")))
}

// sentence returns a text on one line that starts with a capital letter, unless it starts with a
// name. Tenants have written parts of it.
func sentence(text string) string {
	text = strings.Join(strings.Fields(caret.Plain(text)), " ")
	first, _, _ := strings.Cut(text, " ")
	if text == "" || strings.ContainsAny(first, "._-:/\"") {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// escape makes a text one cell of a table.
func escape(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(text)
}
