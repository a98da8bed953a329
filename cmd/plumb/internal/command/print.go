// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/show"
	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/terminal"
)

// hides reports whether the output format does not contain the sentence that says why nothing
// starts.
func (w *planner) hides(report *show.Report) bool {
	return w.output == outputYAML || report.Mistaken() && w.output == outputJSON
}

// print writes the report. It returns errAuthor if an author has to act.
func (w *planner) print(report *show.Report) error {
	out, said := w.command.OutOrStdout(), w.command.ErrOrStderr()
	if err := report.Errors(said, w.terminal(said)); err != nil {
		return err
	}
	if w.hides(report) {
		if _, err := io.WriteString(said, report.Nothing()); err != nil {
			return err
		}
	}
	table := func() error { return report.Table(out, w.tableOptions(out)) }
	write := map[string]func() error{
		outputTable: table, outputWide: table,
		outputJSON: func() error { return report.JSON(out) },
		outputYAML: func() error {
			if err := report.Assumptions(said); err != nil {
				return err
			}
			return report.YAML(out)
		},
	}
	if err := write[w.output](); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return w.verdict(report)
}

// tableOptions are how a table is written to a stream.
func (w *planner) tableOptions(stream io.Writer) show.Options {
	return show.Options{Terminal: w.terminal(stream), Wide: w.output == outputWide}
}

// terminal returns what a stream is shown on.
func (w *planner) terminal(stream io.Writer) terminal.Terminal {
	if w.Terminal != nil {
		return w.Terminal(stream)
	}
	return terminal.Of(stream)
}

// verdict returns errAuthor if an author has to act on a report.
func (w *planner) verdict(report *show.Report) error {
	complaints := report.MustStart(w.mustStart)
	for _, complaint := range complaints {
		w.say("%s", complaint)
	}
	if report.Failed() || len(complaints) > 0 || w.strict && len(report.Warnings) > 0 {
		return errAuthor
	}
	return nil
}
