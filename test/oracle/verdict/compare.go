// SPDX-License-Identifier: Apache-2.0

// Package verdict compares what Pipelines-as-Code and Plumbline made of a scenario, and knows which
// differences are meant.
package verdict

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Run is a PipelineRun without what only one side knows.
type Run struct {
	Pipeline  string
	EventType string
	SHA       string
	// Ended is how it ended: "succeeded", "failed", "cancelled", or "runs".
	Ended string
	// Spec is its spec after admission, as JSON, with generated names replaced.
	Spec map[string]any
}

// Check is the newest check run of a name on a commit.
type Check struct{ Name, SHA, Status, Conclusion string }

func (c Check) state() string { return cmp.Or(c.Conclusion, c.Status) }

// Side is what one of the two shows after an act: the runs that the act has started, and all
// checks.
type Side struct {
	Runs   []Run
	Checks []Check
	// Left are the acts, from one, of the runs of a pipeline that are still there; 0 stands for the
	// act itself.
	Left map[string][]int
	// Earlier are the runs of a pipeline that acts before have started and that are still there.
	Earlier map[string][]Earlier
	// Plans are what the events of the scenario came to, for people; Pipelines-as-Code has none.
	Plans []string
}

// Earlier is a run that an act before has started, counted from one, and how it has ended by now.
type Earlier struct {
	Act   int
	Ended string
}

// What differs.
type What string

// What may differ.
const (
	// OnlyPaC and OnlyOurs are runs that one side has more of.
	OnlyPaC  What = "a run of Pipelines-as-Code only"
	OnlyOurs What = "a run of Plumbline only"
	// Rendered is a value in the spec of a run of both.
	Rendered What = "rendered"
	// Labelled is the event type of a run of both.
	Labelled What = "event type"
	// Commit is the commit of a run of both.
	Commit What = "commit"
	// Ending is how a run of both ended.
	Ending What = "ended"
	// Reported is a check's state, "" where it is not there.
	Reported What = "check"
	// Left are the acts whose runs of a pipeline are still there.
	Left What = "runs that are left"
	// Became is how a run of an act before has ended by now.
	Became What = "an earlier run"
)

// Difference is one, after one act.
type Difference struct {
	Act  int // from zero
	What What
	// Subject is a pipeline, or the name of a check.
	Subject string
	// SHA is the commit of a check.
	SHA string
	// Path is where in the spec, e.g. "taskRunTemplate.serviceAccountName".
	Path string
	// Of is the act that has started an earlier run, from one.
	Of        int
	PaC, Ours string
	// Ran reports whether Pipelines-as-Code alone has started a run after the act.
	Ran bool
}

func (d Difference) String() string {
	text := fmt.Sprintf("after act %d: %s, %s", d.Act+1, d.What, d.Subject)
	if d.Path != "" {
		text += ", " + d.Path
	}
	if d.Of > 0 {
		text += fmt.Sprintf(" of act %d", d.Of)
	}
	if d.PaC != d.Ours {
		text += fmt.Sprintf(": Pipelines-as-Code %q, Plumbline %q", d.PaC, d.Ours)
	}
	return text
}

// between stands in the name of a pipeline's check between the application's and its own.
const between = " / "

// Compare lists the differences of two sides after each act. A difference in a check, or in the
// end of an earlier run, is listed once, after the act that caused it. From the act on at which a
// pipeline's runs differ, its checks and earlier runs are not compared: they follow from the runs.
// application is the first part of the names of checks.
func Compare(application string, pac, ours []Side) []Difference {
	var all []Difference
	differ, before := map[string]bool{}, map[Difference]bool{}
	for act := range min(len(pac), len(ours)) {
		found := runs(pac[act].Runs, ours[act].Runs)
		for i := range found {
			if found[i].What == OnlyPaC || found[i].What == OnlyOurs || found[i].What == Ending {
				differ[checkOf(application, found[i])] = true
			}
		}
		now := map[Difference]bool{}
		for _, d := range append(checks(pac[act].Checks, ours[act].Checks), earlier(pac[act].Earlier, ours[act].Earlier)...) {
			now[d] = true
			if !differ[checkOf(application, d)] && !before[d] {
				found = append(found, d)
			}
		}
		before = now
		for _, d := range left(pac[act].Left, ours[act].Left) {
			if !differ[checkOf(application, d)] {
				found = append(found, d)
			}
		}
		ran := slices.ContainsFunc(found, func(d Difference) bool { return d.What == OnlyPaC })
		for i := range found {
			found[i].Act, found[i].Ran = act, ran
		}
		all = append(all, found...)
	}
	return all
}

func runs(pac, ours []Run) []Difference {
	var all []Difference
	left, right := byPipeline(pac), byPipeline(ours)
	for _, name := range either(left, right) {
		a, b := left[name], right[name]
		for i := range max(len(a), len(b)) {
			switch {
			case i >= len(b):
				all = append(all, Difference{What: OnlyPaC, Subject: name, PaC: a[i].EventType})
			case i >= len(a):
				all = append(all, Difference{What: OnlyOurs, Subject: name, Ours: b[i].EventType})
			default:
				all = append(all, pair(a[i], b[i])...)
			}
		}
	}
	return all
}

// either are the keys of both maps, in order.
func either[T any](left, right map[string]T) []string {
	return slices.Compact(slices.Sorted(
		slices.Values(slices.AppendSeq(slices.Collect(maps.Keys(left)), maps.Keys(right)))))
}

func byPipeline(list []Run) map[string][]Run {
	all := map[string][]Run{}
	for _, r := range list {
		all[r.Pipeline] = append(all[r.Pipeline], r)
	}
	return all
}

// pair compares two runs of one pipeline.
func pair(a, b Run) []Difference {
	var all []Difference
	add := func(what What, path, pac, ours string) {
		if pac != ours {
			all = append(all, Difference{What: what, Subject: a.Pipeline, Path: path, PaC: pac, Ours: ours})
		}
	}
	add(Labelled, "", a.EventType, b.EventType)
	add(Commit, "", a.SHA, b.SHA)
	add(Ending, "", a.Ended, b.Ended)
	left, right := map[string]string{}, map[string]string{}
	flatten("", a.Spec, left)
	flatten("", b.Spec, right)
	for _, path := range either(left, right) {
		add(Rendered, path, left[path], right[path])
	}
	return all
}

// flatten writes the leaves of a value by their paths. Of lists whose items have names the name is
// in the path.
func flatten(path string, value any, into map[string]string) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			flatten(strings.TrimPrefix(path+"."+key, "."), inner, into)
		}
	case []any:
		for i, inner := range v {
			key := fmt.Sprint(i)
			if fields, is := inner.(map[string]any); is && fields["name"] != nil {
				key = fmt.Sprint(fields["name"])
			}
			flatten(path+"["+key+"]", inner, into)
		}
	default:
		text, err := json.Marshal(v)
		if err != nil {
			text = fmt.Append(nil, v)
		}
		into[path] = strings.Trim(string(text), `"`)
	}
}

func checks(pac, ours []Check) []Difference {
	left, right := byName(pac), byName(ours)
	names := maps.Clone(left)
	maps.Copy(names, right)
	var all []Difference
	for _, key := range slices.SortedFunc(maps.Keys(names),
		func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }) {
		if a, b := left[key].state(), right[key].state(); a != b {
			all = append(all, Difference{What: Reported, Subject: key[0], SHA: key[1], PaC: a, Ours: b})
		}
	}
	return all
}

func left(pac, ours map[string][]int) []Difference {
	var all []Difference
	for _, name := range either(pac, ours) {
		if a, b := fmt.Sprint(slices.Sorted(slices.Values(pac[name]))),
			fmt.Sprint(slices.Sorted(slices.Values(ours[name]))); a != b {
			all = append(all, Difference{What: Left, Subject: name, PaC: a, Ours: b})
		}
	}
	return all
}

// earlier compares the runs of acts before, of pipelines of which both sides have the same.
func earlier(pac, ours map[string][]Earlier) []Difference {
	var all []Difference
	for _, name := range slices.Sorted(maps.Keys(pac)) {
		a, b := inOrder(pac[name]), inOrder(ours[name])
		for i := range min(len(a), len(b)) {
			if a[i].Act == b[i].Act && a[i].Ended != b[i].Ended {
				all = append(all, Difference{What: Became, Subject: name, Of: a[i].Act, PaC: a[i].Ended, Ours: b[i].Ended})
			}
		}
	}
	return all
}

func inOrder(runs []Earlier) []Earlier {
	return slices.SortedFunc(slices.Values(runs),
		func(a, b Earlier) int { return cmp.Or(cmp.Compare(a.Act, b.Act), cmp.Compare(a.Ended, b.Ended)) })
}

// checkOf is the name of the check that a difference is about, or of the pipeline that it is about.
func checkOf(application string, d Difference) string {
	if d.What == Reported {
		return d.Subject
	}
	return application + between + d.Subject
}

func byName(list []Check) map[[2]string]Check {
	all := map[[2]string]Check{}
	for _, c := range list {
		all[[2]string{c.Name, c.SHA}] = c
	}
	return all
}
