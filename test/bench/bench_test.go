// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-ci/plumbline/test/bench"
)

// The short form of `make bench`: one section gives its figures, which go to a file and from there
// into the page. No figure's size is asserted: it is the machine's.
func TestBenchmarkMeasures(t *testing.T) {
	var printed strings.Builder
	report, err := bench.Run(t.Context(), bench.Options{
		During: 2 * time.Second, Rates: []float64{1}, Only: regexp.MustCompile("^(plan|load-one-1)$"), To: &printed,
	})
	t.Log(printed.String())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bench.json")
	if err := report.Write(path); err != nil {
		t.Fatal(err)
	}
	if report, err = bench.Read(path); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		section, figure string
		bare            bool
	}{
		{"plan", "plan of 150 pipelines, 150 selected", false},
		{"plan", "plan of 150 pipelines, 1 selected, .tekton as before", false},
		{"load-one-1", "event → PipelineRun p99", true},
		{"load-one-1", "event → first check p50", false},
		{"load-one-1", "accept p50", true},
		{"load-one-1", "Kubernetes calls per event: controller create pipelineruns", false},
		{"load-one-1", "Git service calls per event: checks.create", false},
		{"load-one-1", "CPU per event", false},
		{"load-one-1", "RSS of the controller", false},
	} {
		f, found := report.Figure(want.section, want.figure)
		if !found || f.Value <= 0 || want.bare != (f.Bare > 0) {
			t.Errorf("%s of %s is %+v, want a figure, and of a bare client: %t", want.figure, want.section, f, want.bare)
		}
	}
	if f, _ := report.Figure("load-one-1", "Kubernetes calls per event: controller create pipelineruns"); f.Value != 1 {
		t.Errorf("%v PipelineRuns were created for an event, want 1", f.Value)
	}
	if report.Machine.Fsync <= 0 || report.Machine.CPU == "" || report.Machine.Versions["tekton"] == "" {
		t.Errorf("the machine's facts are %+v", report.Machine)
	}
	page, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	again, err := report.Page(string(page))
	if err != nil || !strings.Contains(again, report.Machine.CPU) {
		t.Errorf("the page is not written anew: %v", err)
	}
	if twice, err := report.Page(again); err != nil || twice != again {
		t.Errorf("the page written twice is another one: %v", err)
	}
}
