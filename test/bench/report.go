// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/plumbline-ci/plumbline/test/installation"
)

// Report is what one run measured.
type Report struct {
	Machine Machine   `json:"machine"`
	Began   time.Time `json:"began"`
	// Seconds is how long each load went on.
	Seconds  float64   `json:"seconds"`
	Sections []Section `json:"sections"`
}

// Section is one part of the benchmark, measured on a control plane of its own.
type Section struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	// Took is in seconds. Failed is why there are no figures, or not all.
	Took    float64  `json:"took"`
	Failed  string   `json:"failed,omitempty"`
	Figures []Figure `json:"figures"`
}

// Figure is one number. Bare is the same number of a client that does nothing but the create, on
// the same control plane; 0 is that there is no such number.
type Figure struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
	Bare  float64 `json:"bare,omitempty"`
}

// add appends a figure.
func (s *Section) add(name, unit string, value, bare float64) {
	s.Figures = append(s.Figures, Figure{Name: name, Unit: unit, Value: value, Bare: bare})
}

// times adds the percentiles of durations, in milliseconds.
func (s *Section) times(name string, all, bare []time.Duration) {
	for _, p := range []int{50, 95, 99} {
		s.add(fmt.Sprintf("%s p%d", name, p), "ms", milliseconds(installation.Percentile(all, p)),
			milliseconds(installation.Percentile(bare, p)))
	}
}

// calls adds the sum of counted calls and each kind, divided.
func (s *Section) calls(name string, counted map[string]int, by int) {
	sum := 0
	for _, n := range counted {
		sum += n
	}
	s.add(name, "calls", float64(sum)/float64(by), 0)
	for _, kind := range slices.Sorted(maps.Keys(counted)) {
		s.add(name+": "+kind, "calls", float64(counted[kind])/float64(by), 0)
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Figure returns a figure of a section that was measured.
func (r *Report) Figure(section, name string) (Figure, bool) {
	for _, s := range r.Sections {
		if s.Name != section {
			continue
		}
		for _, f := range s.Figures {
			if f.Name == name {
				return f, true
			}
		}
	}
	return Figure{}, false
}

// print writes the section for people: the ratio to the bare client first.
func (s *Section) print(to io.Writer) {
	_, _ = fmt.Fprintf(to, "\n%s: %s (%.0f s)\n", s.Name, s.Title, s.Took)
	if s.Failed != "" {
		_, _ = fmt.Fprintf(to, "  ✗ %s\n", s.Failed)
	}
	if len(s.Figures) > 0 {
		_, _ = fmt.Fprintf(to, "  %8s  %12s %12s  \n", "ratio", "Plumbline", "bare")
	}
	for _, f := range s.Figures {
		_, _ = fmt.Fprintf(to, "  %8s  %12s %12s  %-9s %s\n", f.ratio(), number(f.Value), f.bare(), f.Unit, f.Name)
	}
}

// ratio is how many times that of the bare client the figure is; "" if there is no such.
func (f Figure) ratio() string {
	if f.Bare <= 0 {
		return ""
	}
	return number(f.Value/f.Bare) + " ×"
}

func (f Figure) bare() string {
	if f.Bare <= 0 {
		return ""
	}
	return number(f.Bare)
}

// Keep adds the sections of an earlier report that this one has not.
func (r *Report) Keep(before *Report) {
	for _, s := range before.Sections {
		if !slices.ContainsFunc(r.Sections, func(mine Section) bool { return mine.Name == s.Name }) {
			r.Sections = append(r.Sections, s)
		}
	}
}

// number has three digits that say something.
func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v > -10 && v < 10:
		return fmt.Sprintf("%.2f", v)
	case v > -100 && v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// Write stores the report as JSON.
func (r *Report) Write(path string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o600)
}

// Read is the report that Write stored.
func Read(path string) (*Report, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &Report{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}
