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
		_, err := fmt.Fprintf(w, "Nothing starts: %s.\n", oneLine(strings.TrimSuffix(r.Message, ".")))
		return err
	}
	cells := "PIPELINE\tSTARTS\tWHY\n"
	for _, row := range r.Pipelines {
		why := strings.TrimPrefix(strings.TrimPrefix(row.Why, "waiting: "), "selected: ")
		cells += fmt.Sprintf("%s\t%s\t%s\n", oneLine(row.Pipeline), row.Starts, oneLine(why))
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(table, cells); err != nil {
		return err
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(r.Assumed) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\n%s", r.assumptions())
	return err
}

func (r *Report) assumptions() string {
	var b strings.Builder
	for _, sentence := range r.Assumed {
		fmt.Fprintf(&b, "Assumed: %s.\n", oneLine(sentence))
	}
	return b.String()
}

// oneLine keeps what an author wrote from being more than a cell of a table.
func oneLine(text string) string { return caret.Plain(text) }

// YAML writes the PipelineRuns exactly as they are created.
func (r *Report) YAML(w io.Writer) error {
	for i, run := range r.runs {
		data, err := yaml.Marshal(run)
		if err != nil {
			return fmt.Errorf("encoding PipelineRun %s: %w", run.Name, err)
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

// JSON writes everything but the PipelineRuns.
func (r *Report) JSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// Errors writes what authors have to mend, and, where the output has no room for it, what was assumed.
func (r *Report) Errors(w io.Writer) error {
	for _, row := range r.Pipelines {
		if row.Error == nil {
			continue
		}
		if _, err := io.WriteString(w, r.sources.Show(row.Error.Place, row.Error.Message)); err != nil {
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
