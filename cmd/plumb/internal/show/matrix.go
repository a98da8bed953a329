// SPDX-License-Identifier: Apache-2.0

package show

import (
	"io"
	"slices"
	"strings"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/terminal"
)

// Column is the report of one event, and the event's name.
type Column struct {
	Head   string
	Report *Report
}

// Matrix is the answer for several events.
type Matrix []Column

// key identifies a definition in the reports of several events.
type key struct {
	file     string
	document int
}

// Table writes a line for each event, and which pipelines each of them starts.
func (m Matrix) Table(w io.Writer, o Options) error {
	heads := []string{"PIPELINE"}
	if o.Wide {
		heads = append(heads, "FILE")
	}
	var events [][]terminal.Cell
	for _, column := range m {
		heads = append(heads, column.Head)
		says := column.Report.headline
		if len(column.Report.Pipelines) == 0 || column.Report.Mistaken() {
			says += ". " + strings.TrimSuffix(column.Report.nothing(), "\n")
		}
		events = append(events, cells([]string{column.Head, says}))
	}
	if err := o.Table(w, events); err != nil {
		return err
	}
	rows := [][]terminal.Cell{cells(heads)}
	merged := m.Merged()
	for _, row := range merged.Pipelines {
		line := cells([]string{oneLine(row.Pipeline)})
		if o.Wide {
			line = append(line, terminal.Cell{Text: oneLine(row.File)})
		}
		for _, column := range m {
			starts := column.Report.startsOf(row.key())
			line = append(line, terminal.Cell{Text: string(starts), Style: starts.style()})
		}
		rows = append(rows, line)
	}
	if len(rows) > 1 {
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		if err := o.Table(w, rows); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, below(merged.assumptions()))
	return err
}

func (row *Row) key() key { return key{row.File, row.Document} }

// startsOf returns whether a definition starts. It does not if the report lacks it.
func (r *Report) startsOf(k key) Starts {
	for i := range r.Pipelines {
		if r.Pipelines[i].key() == k {
			return r.Pipelines[i].Starts
		}
	}
	return No
}

// JSON writes one list with the reports of all events.
func (m Matrix) JSON(w io.Writer) error {
	reports := make([]*Report, len(m))
	for i := range m {
		reports[i] = m[i].Report
	}
	return writeJSON(w, reports)
}

// Errors writes the mistakes and warnings of all events, each once.
func (m Matrix) Errors(w io.Writer, t terminal.Terminal) error {
	var all []string
	for _, column := range m {
		all = union(all, column.Report.complaints(t))
	}
	_, err := io.WriteString(w, strings.Join(all, ""))
	return err
}

// Merged returns a report with each definition and each warning of all events once. A definition
// starts if one event starts it, and has the first mistake that was found.
func (m Matrix) Merged() *Report {
	merged := &Report{}
	at := map[key]int{}
	for _, column := range m {
		report := column.Report
		for _, row := range report.Pipelines {
			if i, known := at[row.key()]; known {
				merged.Pipelines[i].merge(row)
				continue
			}
			at[row.key()] = len(merged.Pipelines)
			merged.Pipelines = append(merged.Pipelines, row)
		}
		merged.Warnings = union(merged.Warnings, report.Warnings)
		merged.Assumed = union(merged.Assumed, report.Assumed)
		if report.Mistaken() {
			merged.Disposition, merged.Reason, merged.Message = report.Disposition, report.Reason, report.Message
		}
	}
	return merged
}

// merge adds what another event does with the same definition.
func (p *Row) merge(other Row) {
	if other.Starts == Yes || other.Starts == Unknown && p.Starts == No {
		p.Starts = other.Starts
	}
	if p.Error == nil {
		p.Error = other.Error
	}
}

// union returns list with each of more that it does not have.
func union[T comparable](list, more []T) []T {
	for _, one := range more {
		if !slices.Contains(list, one) {
			list = append(list, one)
		}
	}
	return list
}
