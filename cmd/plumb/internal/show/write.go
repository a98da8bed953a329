// SPDX-License-Identifier: Apache-2.0

package show

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/caret"
)

// Table writes what starts, what does not, and why.
func (r *Report) Table(w io.Writer) error {
	if len(r.Pipelines) == 0 {
		_, err := io.WriteString(w, r.nothing()+below(r.assumptions()))
		return err
	}
	cells := "PIPELINE\tSTARTS\tWHY\n"
	for _, row := range r.Pipelines {
		cells += fmt.Sprintf("%s\t%s\t%s\n", oneLine(row.Pipeline), row.Starts, oneLine(row.why()))
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(table, cells); err != nil {
		return err
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, below(r.assumptions()))
	return err
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
		return "Nothing starts: " + r.why() + ".\n"
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

// why returns the sentence of a row without the words that its other cells have.
func (row *Row) why() string {
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
func (r *Report) JSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// Errors writes what authors have to fix, and the warnings.
func (r *Report) Errors(w io.Writer) error {
	for _, row := range r.Pipelines {
		if row.Error == nil {
			continue
		}
		if _, err := io.WriteString(w, r.sources.Show(row.Error.Place, row.Error.Message)); err != nil {
			return err
		}
	}
	for _, warning := range r.Warnings {
		if _, err := io.WriteString(w, r.sources.Warn(warning.Place, warning.Message)); err != nil {
			return err
		}
	}
	return nil
}

// Assumptions writes what was assumed.
func (r *Report) Assumptions(w io.Writer) error {
	_, err := io.WriteString(w, r.assumptions())
	return err
}
