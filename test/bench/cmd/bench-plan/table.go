// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// table writes one column a sample.
type table struct {
	to      io.Writer
	samples []sample
}

func print(to io.Writer, samples []sample) {
	t := table{to: to, samples: samples}
	if len(samples) == 0 {
		return
	}
	t.title("")
	t.row("PipelineRuns in .tekton", func(s sample) string { return fmt.Sprint(s.runs) })
	t.title("Seconds from the accepted delivery until")
	for phase, what := range [phases]string{"the plan is recorded", "the last PipelineRun is created", "every run is over and reported"} {
		t.row(what, func(s sample) string { return seconds(s.ended[phase]) })
	}
	t.title("Bytes")
	t.row("GitEvent once planned", func(s sample) string { return fmt.Sprint(s.event.planned) })
	t.row("GitEvent at its largest", func(s sample) string { return fmt.Sprint(s.event.largest) })
	t.row("GitEvent settled", func(s sample) string { return fmt.Sprint(s.event.settled) })
	t.row("planned PipelineRuns, uncompressed", func(s sample) string { return fmt.Sprint(s.event.blob) })
	for phase, what := range [phases]string{"to plan", "to create", "to report and settle"} {
		t.calls("Calls to the Git service "+what, func(s sample) map[string]int { return s.git[phase] })
		t.calls("Calls to the API server "+what, func(s sample) map[string]int { return s.kube[phase] })
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f", max(0, d.Seconds())) }

func (t table) title(text string) { _, _ = fmt.Fprintf(t.to, "\n%s\n", text) }

func (t table) row(name string, value func(sample) string) {
	_, _ = fmt.Fprintf(t.to, "  %-36s", name)
	for _, s := range t.samples {
		_, _ = fmt.Fprintf(t.to, " %9s", value(s))
	}
	_, _ = fmt.Fprintln(t.to)
}

// calls writes a row for each kind of call that any sample made, and their sum.
func (t table) calls(what string, of func(sample) map[string]int) {
	names := map[string]bool{}
	for _, s := range t.samples {
		for name := range of(s) {
			names[name] = true
		}
	}
	t.title(what)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		t.row(name, func(s sample) string { return fmt.Sprint(of(s)[name]) })
	}
	t.row("all", func(s sample) string {
		sum := 0
		for _, n := range of(s) {
			sum += n
		}
		return fmt.Sprint(sum)
	})
}
