// SPDX-License-Identifier: Apache-2.0

package show

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/caret"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/terminal"
)

// Options are how a report is written.
type Options struct {
	terminal.Terminal
	// Wide adds a column with the files.
	Wide bool
}

// Table writes which event it is, what starts, what does not, and why.
func (r *Report) Table(w io.Writer, o Options) error {
	if r.headline != "" {
		if _, err := io.WriteString(w, strings.Join(o.Wrap(r.headline, 0), "\n")+"\n"); err != nil {
			return err
		}
	}
	if len(r.Pipelines) == 0 || r.Mistaken() {
		return r.sentences(w, o)
	}
	heads := []string{"PIPELINE", "STARTS", "WHY"}
	if o.Wide {
		heads = slices.Insert(heads, 1, "FILE")
	}
	rows := [][]terminal.Cell{cells(heads)}
	for _, row := range r.Pipelines {
		line := cells([]string{oneLine(row.Pipeline), string(row.Starts), oneLine(row.why())})
		line[1].Style = row.Starts.style()
		if o.Wide {
			line = slices.Insert(line, 1, terminal.Cell{Text: oneLine(row.File)})
		}
		rows = append(rows, line)
	}
	if err := o.Table(w, rows); err != nil {
		return err
	}
	_, err := io.WriteString(w, below(r.assumptions()))
	return err
}

// sentences writes why nothing starts, and what was assumed.
func (r *Report) sentences(w io.Writer, o Options) error {
	var b strings.Builder
	for line := range strings.Lines(r.nothing() + below(r.assumptions())) {
		b.WriteString(strings.Join(o.Wrap(strings.TrimSuffix(line, "\n"), 0), "\n") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func cells(texts []string) []terminal.Cell {
	all := make([]terminal.Cell, len(texts))
	for i, text := range texts {
		all[i].Text = text
	}
	return all
}

func (s Starts) style() terminal.Style {
	return map[Starts]terminal.Style{Yes: terminal.Green, No: terminal.Red, Unknown: terminal.Yellow}[s]
}

// below returns a text with an empty line above it.
func below(text string) string {
	if text == "" {
		return ""
	}
	return "\n" + text
}

// Nothing returns why nothing starts, and which runs the event cancels; "" if a pipeline starts or
// has a mistake. Each pipeline that plumb cannot decide has a line.
func (r *Report) Nothing() string {
	unknown, nothing := "", true
	for _, row := range r.Pipelines {
		if row.Starts == Unknown {
			unknown += "It is unknown here whether " + oneLine(row.Pipeline+" starts: "+row.why()) + ".\n"
		}
		nothing = nothing && row.Starts == No && row.Error == nil
	}
	if !nothing {
		return unknown
	}
	return r.nothing()
}

func (r *Report) nothing() string {
	if r.Cancels == nil {
		why, separator := r.why(), ": "
		if first, _ := utf8.DecodeRuneInString(why); unicode.IsUpper(first) {
			separator = ". "
		}
		return "Nothing starts" + separator + why + ".\n"
	}
	of := fmt.Sprintf("of pull request %d", r.Event.PullRequest)
	if r.Cancels.Ref != "" {
		of = "of " + r.Cancels.Ref
	}
	runs := "all earlier runs " + of
	if names := r.Cancels.Names; len(names) > 0 {
		runs = fmt.Sprintf("the earlier runs %s that are called %s", of, strings.Join(names, ", "))
	}
	return "Nothing starts, and " + oneLine(runs) + " are cancelled: " + r.why() + ".\n"
}

// why returns the message of the event without the words that the sentence around it has.
func (r *Report) why() string {
	why := strings.TrimSuffix(r.Message, ".")
	for _, said := range []string{"nothing was started: ", "nothing was done: "} {
		why = strings.TrimPrefix(why, said)
	}
	return oneLine(why)
}

// why returns the sentence of a row without the words that its other cells have. Errors writes a
// mistake.
func (row *Row) why() string {
	if row.Error != nil {
		return "error, see above"
	}
	return strings.TrimPrefix(strings.TrimPrefix(row.Why, "waiting: "), "selected: ")
}

func (r *Report) assumptions() string {
	var b strings.Builder
	for _, sentence := range r.Assumed {
		fmt.Fprintf(&b, "Assumed: %s.\n", oneLine(sentence))
	}
	return b.String()
}

// oneLine makes an author's text fit into one cell of a table.
func oneLine(text string) string { return caret.Plain(text) }

// YAML writes the PipelineRuns exactly as they are created.
func (r *Report) YAML(w io.Writer) error {
	for i, run := range r.runs {
		data, err := yaml.Marshal(run.shown)
		if err != nil {
			return fmt.Errorf("encoding PipelineRun %s: %w", run.shown.Name, err)
		}
		if i > 0 {
			data = append([]byte("---\n"), data...)
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return nil
}

// JSON writes the report without the PipelineRuns.
func (r *Report) JSON(w io.Writer) error { return writeJSON(w, r) }

func writeJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// Errors writes what authors have to fix, and the warnings.
func (r *Report) Errors(w io.Writer, t terminal.Terminal) error {
	_, err := io.WriteString(w, strings.Join(r.complaints(t), ""))
	return err
}

// complaints returns the mistakes and the warnings, each with its lines.
func (r *Report) complaints(t terminal.Terminal) []string {
	var all []string
	for _, row := range r.Pipelines {
		if row.Error != nil {
			all = append(all, r.sources.Show(t, row.Error.Place, row.Error.Message))
		}
	}
	for _, warning := range r.Warnings {
		all = append(all, r.sources.Warn(t, warning.Place, warning.Message))
	}
	return all
}

// Assumptions writes what was assumed.
func (r *Report) Assumptions(w io.Writer) error {
	_, err := io.WriteString(w, r.assumptions())
	return err
}
