// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// What a page has around the part that Page writes.
const (
	pageBegin = "<!-- figures: begin (make bench-page) -->\n"
	pageEnd   = "<!-- figures: end -->\n"
)

// firstStartReady is the first figure of a section "size", whose kinds of calls are not known
// before.
const firstStartReady = "first start: ready"

// row is one line of the page's table: what was measured on other days, and where today's figure
// is. Ratio shows it as so many times that of the bare client.
type row struct {
	title, pac, before, wanted string
	now                        []cell
	// each is set where the now is the growth for each of so many more of something, from the first
	// cell's figure to the second's.
	each float64
}

// cell is a figure of a section.
type cell struct {
	section, figure string
	ratio           bool
}

func rows() []row {
	figure := func(section, name string) cell { return cell{section: section, figure: name} }
	one := func(section, name string) []cell { return []cell{figure(section, name)} }
	both := func(section, name string) []cell { return append(one(section, name), cell{section, name, true}) }
	const run, accept = "event → PipelineRun p50", "accept p50"
	return []row{
		{"event → PipelineRun, p50 at 1/s", "75 ms (10 ×)", "50 ms (6.6 ×)", "≤ 3 ×", both("load-one-1", run), 0},
		{"the same at 5/s", "175 ms (at 4/s)", "56 ms (at 4/s)", "", both("load-one-5", run), 0},
		{"the same at 20/s", "187 s", "51 s", "≤ 4 ×", both("load-one-20", run), 0},
		{"the same at 20/s over 50 installations", "", "", "≤ 4 ×", both("load-many-20", run), 0},
		{"sustained PipelineRuns/s, one installation", "5.0", "3.3 to 4.1", "≥ 20",
			one("sustained-one", "sustained PipelineRuns/s"), 0},
		{"the same over 50 installations, of one bare writer's", "", "", "≥ 0.6 ×",
			both("sustained-many", "sustained PipelineRuns/s"), 0},
		{"calls to Kubernetes per event, quiet", "36", "26", "≤ 14", one("load-one-1", "Kubernetes calls per event"), 0},
		{"the same at 20/s", "", "42", "≤ 14", one("load-one-20", "Kubernetes calls per event"), 0},
		{"calls to GitHub per event", "14", "9.5", "≤ 6", one("load-one-1", "Git service calls per event"), 0},
		{"the same at 20/s", "", "", "≤ 6", one("load-one-20", "Git service calls per event"), 0},
		{"CPU per event", "62 ms", "46 ms", "≤ 12 ms", one("load-one-5", "CPU per event"), 0},
		{"accept, p50 at 1/s", "5 ms, stores nothing", "13 ms", "≤ 2 ×", both("load-one-1", accept), 0},
		{"accept, p99 at 1/s", "8 ms, stores nothing", "28 ms", "≤ 4 ×", both("load-one-1", "accept p99"), 0},
		{"accept, p50 at 20/s", "", "56 ms", "≤ 2 ×", both("load-one-20", accept), 0},
		{"accept, p99 at 20/s", "", "337 ms", "≤ 4 ×", both("load-one-20", "accept p99"), 0},
		{"highest accept rate", "", "", "", one("accept", "highest accept rate"), 0},
		{"run finished → final check, p50 at 1/s", "", "", "", one("load-one-1", "run finished → final check p50"), 0},
		{"first start until all are claimed (before: 5,000, now: 10,000 Repositories)", "", "203 s", "≤ 30 s for 5,000",
			one("size-repositories-10000", "first start: all claimed"), 0},
		{"event of a claimed Repository during it", "", "waits", "does not wait",
			one("size-repositories-10000", "first start: first event served"), 0},
		{"restart: GETs of Repositories (before: 5,000, now: 10,000)", "", "5,100", "0",
			one("size-repositories-10000", "restart: Kubernetes calls: controller get repositories"), 0},
		{"plan of 150 pipelines with path filters, no network: 150 · 1 selected", "328 ms", "103 ms", "≤ 33 ms", []cell{
			figure("plan", "plan of 150 pipelines, 150 selected"), figure("plan", "plan of 150 pipelines, 1 selected"),
		}, 0},
		{"the same, `.tekton` as the event before had it", "", "", "≤ 33 ms", []cell{
			figure("plan", "plan of 150 pipelines, 150 selected, .tekton as before"),
			figure("plan", "plan of 150 pipelines, 1 selected, .tekton as before"),
		}, 0},
		{"RSS of the controller per idle Repository, from 100 to 10,000", "", "", "≤ 4 KiB", []cell{
			figure("size-repositories-100", "RSS of the controller"), figure("size-repositories-10000", "RSS of the controller"),
		}, 9900},
		{"RSS of the receiver per idle Repository, from 100 to 10,000", "", "", "≤ 4 KiB", []cell{
			figure("size-repositories-100", "RSS of the receiver"), figure("size-repositories-10000", "RSS of the receiver"),
		}, 9900},
		{"CPU per event with 100 · 10,000 Repositories", "", "", "± 20 %",
			[]cell{figure("size-repositories-100", "CPU per event"), figure("size-repositories-10000", "CPU per event")}, 0},
		{"CPU per event with 1,000 · 100,000 settled events", "", "", "± 20 %",
			[]cell{figure("size-settled-1000", "CPU per event"), figure("size-settled-100000", "CPU per event")}, 0},
		{"takeover with 10,000 Repositories: longest event → PipelineRun", "", "", "",
			one("size-repositories-10000", "takeover: longest event → PipelineRun"), 0},
		{"growth under 500 waiting events: controller · receiver", "", "", "< 10 MiB",
			[]cell{figure("waiting", "RSS of the controller grew by"), figure("waiting", "RSS of the receiver grew by")}, 0},
		{"beside a burst of 500, another's event → PipelineRun, p99: alone · beside", "", "", "the same", []cell{
			figure("burst", "the other's event → PipelineRun, alone p99"),
			figure("burst", "the other's event → PipelineRun, beside the burst p99"),
		}, 0},
	}
}

// Page returns the page with the part between its marks written anew: the machine, the table, and
// all figures.
func (r *Report) Page(page string) (string, error) {
	head, rest, found := strings.Cut(page, pageBegin)
	_, tail, ended := strings.Cut(rest, pageEnd)
	if !found || !ended {
		return "", errors.New("it has no marks around the figures")
	}
	var out strings.Builder
	fmt.Fprintf(&out, "\nMeasured %s, %.0f s each: %s.\n\n", r.Began.Format("2006-01-02"), r.Seconds, r.Machine)
	out.WriteString("| figure | PaC | before | now | wanted |\n|---|---|---|---|---|\n")
	for _, row := range rows() {
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", row.title, row.pac, row.before, r.now(row), row.wanted)
	}
	for _, s := range r.Sections {
		fmt.Fprintf(&out,
			"\n<details><summary>%s: %s</summary>\n\n| figure | ratio | Plumbline | bare | unit |\n|---|---|---|---|---|\n",
			s.Name, s.Title)
		for _, f := range s.Figures {
			fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", f.Name, f.ratio(), number(f.Value), f.bare(), f.Unit)
		}
		out.WriteString("\n</details>\n")
	}
	out.WriteString("\n")
	return head + pageBegin + out.String() + pageEnd + tail, nil
}

// now writes the cells of a row, those of sections that were not measured as a dash.
func (r *Report) now(of row) string {
	if of.each > 0 {
		few, foundFew := r.Figure(of.now[0].section, of.now[0].figure)
		manyMore, foundMany := r.Figure(of.now[1].section, of.now[1].figure)
		if !foundFew || !foundMany {
			return "–"
		}
		return number((manyMore.Value-few.Value)*1024/of.each) + " KiB"
	}
	var words []string
	for _, c := range of.now {
		f, found := r.Figure(c.section, c.figure)
		_, measured := r.Figure(c.section, firstStartReady)
		switch {
		case !found && measured: // a kind of call that was not made
			words = append(words, "0")
		case !found:
			words = append(words, "–")
		case c.ratio && f.Bare > 0:
			words = append(words, f.ratio())
		case !c.ratio:
			words = append(words, strings.TrimSpace(number(f.Value)+" "+strings.TrimSuffix(f.Unit, "calls")))
		}
	}
	return strings.Join(slices.Compact(words), " · ")
}
