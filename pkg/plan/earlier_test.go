// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/plan"
	"github.com/plumbline-ci/plumbline/pkg/store/blob"
)

// address is where task is.
const (
	address = "https://git.example/t.yaml"
	task    = "apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: t}\nspec: {steps: [{name: s, image: busybox, script: x}]}\n"
)

// many returns n pipelines in files of 100.
func many(pipelines int, annotations ...string) []git.File {
	var files []git.File
	for i := range pipelines {
		if i%100 == 0 {
			files = append(files, git.File{Path: fmt.Sprintf(".tekton/f%d.yaml", i/100)})
		}
		file := &files[len(files)-1]
		file.Data = append(append(file.Data, "---\n"...), pipeline(fmt.Sprintf("p%d", i), annotations...).Data...)
	}
	return files
}

// fetches is a pipeline that refers to a task at a web address.
func fetches(name string) git.File { return pipeline(name, "task: "+address) }

func TestOpenDecisionKeepsItsPlace(t *testing.T) {
	t.Parallel()
	w := &env{
		files:      []git.File{fetches("a"), pipeline("b", "on-path-change: '**'"), pipeline("c"), fetches("d")},
		addressErr: down(), changedErr: down(),
	}
	first := w.make(t, push())
	var order []string
	for _, run := range first.Runs {
		order = append(order, fmt.Sprint(run.Pipeline, " ", run.Unresolved, " ", run.Wait != nil, " ", run.Manifest != nil))
	}
	if diff := cmp.Diff([]string{"a true true false", "c false false true", "d true true false"}, order); diff != "" ||
		first.Wait == nil {
		t.Fatalf("waits for %v: %s", first.Wait, diff)
	}
	if got := reasons(first)["b"]; got != "waiting: listing the changed files: 502" {
		t.Errorf("b: %s", got)
	}
	w.addressErr, w.tree = nil, map[string]string{address: task}
	w.changedErr, w.changed = nil, git.Changes{Added: []string{"x"}}
	second := w.make(t, again(push(), first))
	order = nil
	for _, run := range second.Runs {
		order = append(order, fmt.Sprint(run.Pipeline, " ", run.Unresolved, " ", run.Manifest != nil))
	}
	if diff := cmp.Diff([]string{"a false true", "c false false", "d false true", "b false true"}, order); diff != "" ||
		second.Wait != nil {
		t.Errorf("waits for %v: %s", second.Wait, diff)
	}
	for _, d := range second.Decisions {
		if d.Open || d.Selected != "" || !strings.HasPrefix(d.Reason, "selected") {
			t.Errorf("%+v, want it decided", d)
		}
	}
}

// A text that changes with each attempt would change the status each time.
func TestFirstTransientMessageStays(t *testing.T) {
	t.Parallel()
	w := &env{files: []git.File{pipeline("a", "on-path-change: '**'"), pipeline("b")}, changedErr: down()}
	first := w.make(t, push())
	w.changedErr = fault.Transientf("GitUnavailable", "503")
	second := w.make(t, again(push(), first))
	if diff := cmp.Diff(first.Decisions, second.Decisions); diff != "" ||
		second.Wait.Error() != "listing the changed files: 503" {
		t.Errorf("waits for %v: %s", second.Wait, diff)
	}
	w.changedErr = fault.Operatorf("CredentialsRefused", "401")
	if got := reasons(w.make(t, again(push(), second)))["a"]; got != "waiting: listing the changed files: 401" {
		t.Errorf("a: %s, want what an operator has to do", got)
	}
}

// A selected pipeline stays selected, with its reason: only what it refers to is open.
func TestSelectedPipelineIsNotMatchedAgain(t *testing.T) {
	t.Parallel()
	w := &env{files: []git.File{pipeline("a", "on-path-change: '**'", "task: "+address)}, addressErr: down(),
		changed: git.Changes{Added: []string{"x"}, Truncated: true}}
	first := w.make(t, push())
	if d := first.Decisions[0]; !d.Open || !strings.HasPrefix(d.Selected, "selected: ") || first.Runs[0].Note == "" {
		t.Fatalf("%+v, %+v", d, first.Runs)
	}
	w.addressErr, w.tree, w.asked = nil, map[string]string{address: task}, nil
	second := w.make(t, again(push(), first))
	if d := second.Decisions[0]; d.Open || d.Reason != first.Decisions[0].Selected ||
		second.Runs[0].Note != first.Runs[0].Note {
		t.Errorf("%+v, %+v", d, second.Runs)
	}
	if w.count("changed")+w.count("pulls") != 0 {
		t.Errorf("asked %v", w.asked)
	}
}

// A stored plan is carried out as it is, even if it would be refused now: an earlier version may
// have allowed more steps.
func TestPlannedRunIsNotPlannedAgain(t *testing.T) {
	t.Parallel()
	w := &env{files: []git.File{pipeline("a"), fetches("b")}, addressErr: down()}
	first := w.make(t, push())
	w.files[0] = edited(w.files[0], "steps: [", "steps: ["+strings.Repeat("{},", 2_000))
	w.addressErr, w.tree = nil, map[string]string{address: task}
	second := w.make(t, again(push(), first))
	if a, b := second.Runs[0], second.Runs[1]; a.Name != first.Runs[0].Name || a.Refused != nil || a.Manifest != nil ||
		b.Manifest == nil {
		t.Errorf("%+v, %+v", a, b)
	}
	if made := w.make(t, push()); made.Runs[0].Refused == nil {
		t.Error("it is not refused when it is planned now")
	}
}

// A check that was started without the dash of a generateName is finished without it.
func TestEarlierRunKeepsNameWithoutDash(t *testing.T) {
	t.Parallel()
	w := &env{files: []git.File{edited(fetches("homelab"), "name: homelab", "generateName: homelab-")}, addressErr: down()}
	in := again(push(), w.make(t, push()))
	if got := in.Earlier.Runs[0].Pipeline; got != "homelab-" {
		t.Fatalf("called %s", got)
	}
	in.Earlier.Runs[0].Pipeline = "homelab"
	w.addressErr, w.tree = nil, map[string]string{address: task}
	if run := w.make(t, in).Runs[0]; run.Pipeline != "homelab" || run.Manifest == nil ||
		in.Earlier.Runs[0].Manifest != nil {
		t.Errorf("%+v, want the name that its check has", run)
	}
}

func TestTooManyPipelinesGiveOneRefusedRun(t *testing.T) {
	t.Parallel()
	w := &env{files: append(many(v1alpha1.MaxRuns, "on-path-change: '**'"), pipeline("hello"),
		pipeline("docs", "on-label: bug"), fetches("waits")), changedErr: down(), addressErr: down()}
	first := w.make(t, push())
	if diff := cmp.Diff([]string{"hello"}, created(first)); diff != "" {
		t.Fatal(diff)
	}
	w.changedErr = nil
	w.changed.Added = []string{"x"}
	second := w.make(t, again(push(), first))
	if second.Reason != "TooManyPipelines" || second.Disposition != v1alpha1.DispositionRuns || second.Wait != nil ||
		len(second.Runs) != 3 || len(created(second)) != 0 ||
		!strings.HasPrefix(second.Message,
			"252 pipelines in .tekton are for this event, and one event starts at most 250: no more of them are started.") {
		t.Fatalf("%s: %s, %+v", second.Reason, second.Message, second.Runs)
	}
	hello, waits, whole := second.Runs[0], second.Runs[1], second.Runs[2]
	if hello.Refused != nil || waits.Unresolved || waits.Refused == nil || whole.Pipeline != ".tekton" ||
		whole.Refused == nil || whole.Refused.Message != second.Message {
		t.Errorf("%+v, want hello to go on and one check for all others", second.Runs)
	}
	if got := reasons(second); got["p7"] != second.Message || got["docs"] == second.Message {
		t.Errorf("p7: %s, docs: %s", got["p7"], got["docs"])
	}
}

func TestTooLargePlanIsRefused(t *testing.T) {
	t.Parallel()
	if plan.MaxBytes != blob.MaxBytes {
		t.Errorf("a plan may have %d bytes, and %d can be kept", plan.MaxBytes, blob.MaxBytes)
	}
	w := &env{tree: map[string]string{"tasks/large.yaml": "apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: large}\nspec: {steps: [{name: s, image: busybox, script: '" +
		strings.Repeat("0123456789abcdef", 900<<10/16) + "'}]}\n"}}
	for i := range 13 {
		w.files = append(w.files, edited(pipeline(fmt.Sprintf("p%02d", i), "task: tasks/large.yaml"),
			"taskSpec:\n          steps: [{name: s, image: busybox, script: \"true\"}]",
			"taskRef: {name: large}\n      - {name: b, taskRef: {name: large}}\n      - {name: c, taskRef: {name: large}}"))
	}
	made := w.make(t, push())
	for i, run := range made.Runs {
		if run.Manifest != nil || run.Secret != "" || run.Refused == nil || run.Refused.Reason != "PlanTooLarge" ||
			made.Decisions[i].Open || made.Decisions[i].Reason != run.Refused.Message {
			t.Fatalf("%+v, want it refused", run)
		}
	}
	if len(made.Runs) != 13 || w.count("file") != 2 {
		t.Errorf("%d runs, asked %v", len(made.Runs), w.asked)
	}
}

// Pipelines may be decided one after the other, for example because a reference is late. The limit
// applies to all of them together.
func TestTooLargeWithEarlierRunsIsRefused(t *testing.T) {
	t.Parallel()
	w := &env{files: []git.File{pipeline("a"), fetches("late")}, addressErr: down()}
	in := again(push(), w.make(t, push()))
	in.Earlier.Bytes = plan.MaxBytes - 100
	w.addressErr, w.tree = nil, map[string]string{address: task}
	made := w.make(t, in)
	first, late := made.Runs[0], made.Runs[1]
	if late.Manifest != nil || late.Refused == nil || late.Refused.Reason != "PlanTooLarge" || made.Wait != nil ||
		first.Refused != nil ||
		!strings.Contains(late.Refused.Message, "in addition to the 32.0 MiB of those that were started before") {
		t.Errorf("%+v and %+v, want the second refused alone", first, late)
	}
	in.Earlier.Bytes = plan.MaxBytes / 2
	if late := w.make(t, in).Runs[1]; late.Manifest == nil || late.Refused != nil {
		t.Errorf("%+v, want it planned", late)
	}
}

func TestNamesAreUniqueAndFit(t *testing.T) {
	t.Parallel()
	templated := edited(pipeline("b"), "name: b\n", "name: 'a-{{ target_branch }}'\n")
	long := edited(pipeline("c"), "name: c\n", "name: '"+strings.Repeat("{{ revision }}", 7)+"'\n")
	w := &env{files: []git.File{pipeline("a-main"), templated, long}}
	var got []string
	for _, run := range w.make(t, push()).Runs {
		if run.Refused == nil {
			got = append(got, run.Pipeline)
			continue
		}
		got = append(got, run.Refused.Reason+" "+run.Pipeline)
	}
	want := []string{
		"a-main", "DuplicateName .tekton/b.yaml", "BadName " + string(bytes.Repeat([]byte("{{ revision }}"), 7)),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
