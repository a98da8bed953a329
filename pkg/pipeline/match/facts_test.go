// SPDX-License-Identifier: Apache-2.0

package match

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/cel"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

// params are a Repository's, of an event of which only a variable is known.
func params(t *testing.T, all ...template.Param) template.Params {
	t.Helper()
	scope, err := template.New(template.Facts{Variables: map[string]string{"event_type": "push"}, Params: all})
	if err != nil {
		t.Fatal(err)
	}
	return scope.Params()
}

func changed(ev Event, files ...string) Event {
	ev.Changed = &Changes{Modified: files}
	return ev
}

func TestSelectAsksOnlyForWhatItDependsOn(t *testing.T) {
	on := func(pairs ...string) map[string]string {
		return annotated(append([]string{"on-event", "[push, pull_request]", "on-target-branch", "[main]"}, pairs...)...)
	}
	tests := map[string]struct {
		event       Event
		annotations map[string]string
		want        template.Needs
	}{
		"a path filter needs the files": {
			push("refs/heads/main"), on("on-path-change", "x"), template.Needs{Changed: true},
		},
		"an ignored path needs the files": {
			push("refs/heads/main"), on("on-path-change-ignore", "x"), template.Needs{Changed: true},
		},
		"a branch that says no outweighs": {push("refs/heads/x"), on("on-path-change", "x"), template.Needs{}},
		"a label that says no outweighs": {
			pull("main"), on("on-path-change", "x", "on-label", "bug"), template.Needs{},
		},
		"an expression that reads both": {
			pull("main"), on("on-cel-expression", `body.x == 1 && "x".pathChanged()`), template.Needs{Changed: true, Body: true},
		},
		"an expression that reads neither": {
			pull("main"), on("on-cel-expression", `event == "push"`), template.Needs{},
		},
		"an expression whose other part says no": {
			pull("main"), on("on-cel-expression", `body.x == 1 && event == "push"`), template.Needs{},
		},
		"annotations that an expression replaces": {
			pull("main"), on("on-cel-expression", `event == "pull_request"`, "on-path-change", "x"), template.Needs{},
		},
		"a namespace that says no outweighs": {
			pull("main"), on("target-namespace", "x", "on-path-change", "x"), template.Needs{},
		},
		"what is known is not asked for again": {
			changed(pull("main"), "x"), on("on-path-change", "x"), template.Needs{},
		},
		"an empty list of files is known": {changed(pull("main")), on("on-path-change", "x"), template.Needs{}},
		"a label event without a label is not looked": {
			labelEvent(), on("on-cel-expression", `body.x == 1 && "x".pathChanged()`), template.Needs{},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Select(tt.event, Pipeline{Annotations: tt.annotations})
			if err != nil {
				t.Fatal(err)
			}
			if !cmp.Equal(got.Needs, tt.want) {
				t.Errorf("needs %+v, want %+v", got.Needs, tt.want)
			}
			if tt.want.Any() && !cmp.Equal(got, Selection{Needs: tt.want}) {
				t.Errorf("an open decision says %+v", got)
			}
		})
	}
}

func labelEvent() Event {
	ev := pull("main")
	ev.EventType = LabelEvent
	return ev
}

// One pipeline cannot change what the next one sees, nor can the order of pipelines.
func TestSelectChangesNothing(t *testing.T) {
	event := func() Event {
		return Event{
			Trigger: v1alpha1.TriggerPush, EventType: "push", BaseRef: "refs/heads/main", HeadRef: "refs/heads/main",
			Namespace: "team",
			Title:     "t", TargetURL: "u", SourceURL: "s", Labels: []string{"b", "a"}, Headers: map[string]string{"X-A": "b"},
			Params:  params(t, template.Param{Name: "p", Value: "v"}),
			Changed: ChangesOf(git.Changes{Added: []string{"z", "a"}, Modified: []string{"y"}}),
			Body:    map[string]any{"a": []any{"x"}},
		}
	}
	ev := event()
	texts := []string{
		`target_branch == "main"`, `target_branch == "refs/heads/main"`, `"z".pathChanged() && files.all[0] == "a"`,
		`body.a.exists(x, x == "x")`, `p == "v"`, `headers["x-a"] == "b"`, `target_branch == "main"`,
	}
	for _, text := range texts {
		got, err := Select(ev, Pipeline{Annotations: annotated("on-cel-expression", text)})
		if err != nil || !got.Selected {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		if _, err := Select(ev, Pipeline{Annotations: annotated("on-event", "push", "on-target-branch", "main",
			"on-path-change", "[z]", "on-path-change-ignore", "q")}); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(event(), ev, cmpopts.IgnoreFields(Event{}, "Params"), cmp.AllowUnexported(Changes{})); diff != "" {
		t.Error(diff)
	}
}

func TestOf(t *testing.T) {
	spec := &v1alpha1.GitEventSpec{
		Trigger: v1alpha1.TriggerPush, EventType: "push", BaseRef: "refs/heads/main", HeadRef: "refs/heads/main",
		HeadURL: "source",
		Project: v1alpha1.Project{URL: "target"}, Repository: v1alpha1.RepositoryReference{Namespace: "team"},
		Headers: map[string]string{"A": "b"},
	}
	want := Event{Trigger: v1alpha1.TriggerPush, EventType: "push", BaseRef: "refs/heads/main", HeadRef: "refs/heads/main",
		Namespace: "team",
		Title:     "commit", TargetURL: "target", SourceURL: "source", Headers: map[string]string{"A": "b"}}
	if diff := cmp.Diff(want, Of(spec, "commit"), cmpopts.IgnoreFields(Event{}, "Params")); diff != "" {
		t.Error(diff)
	}
	spec.PullRequest = &v1alpha1.PullRequest{Title: "pull", Labels: []string{"bug"}}
	want.Title, want.Labels = "pull", []string{"bug"}
	if diff := cmp.Diff(want, Of(spec, "commit"), cmpopts.IgnoreFields(Event{}, "Params")); diff != "" {
		t.Error(diff)
	}
}

func TestPathFiltersAreBounded(t *testing.T) {
	var files []string
	for i := range 3000 {
		files = append(files, fmt.Sprintf("directory/%04d/%s", i, strings.Repeat("a", 200)))
	}
	start := time.Now()
	many := "[" + strings.Repeat("{a,b,c,d}{a,b,c,d}*x, ", 200) + "y]"
	for _, name := range []string{"on-path-change", "on-path-change-ignore"} {
		_, err := Select(changed(push("refs/heads/main"), files...), Pipeline{
			Annotations: annotated("on-event", "push", "on-target-branch", "main", name,
				strings.ReplaceAll(many, "{a,b,c,d}{a,b,c,d}", "{a&#44;b&#44;c&#44;d}{a&#44;b&#44;c&#44;d}")),
		})
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "too many steps for 3000 changed files") {
			t.Errorf("%s: %v, want an Invalid fault", name, err)
		}
		got, err := Select(changed(push("refs/heads/main"), files...), Pipeline{Annotations: annotated("on-event", "push",
			"on-target-branch", "main", name, "["+strings.Repeat("src/**, ", 250)+"x]")})
		if err != nil || got.Selected != (name == "on-path-change-ignore") {
			t.Errorf("%s with 251 patterns: %+v, %v", name, got, err)
		}
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("took %s", took)
	}
}

func TestPathFiltersAndExpressionsShareTheEventsBudget(t *testing.T) {
	scope, err := template.New(template.Facts{Budget: cel.NewBudget(1000)})
	if err != nil {
		t.Fatal(err)
	}
	ev := changed(push("refs/heads/main"), "a.go", "b.go")
	ev.Params = scope.Params()
	for i := range 100 {
		_, err = Select(ev, Pipeline{
			Annotations: annotated("on-event", "push", "on-target-branch", "main", "on-path-change", "[docs/**]"),
		})
		if err != nil && i > 2 {
			break
		}
	}
	const together = "too many steps together"
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(),
		"annotation pipelinesascode.tekton.dev/on-path-change: the expressions") || !strings.Contains(err.Error(), together) {
		t.Errorf("%v, want an Invalid fault with %q", err, together)
	}
	if _, err := Select(ev, Pipeline{Annotations: annotated("on-cel-expression", "true")}); err == nil ||
		!strings.Contains(err.Error(), together) {
		t.Errorf("an expression: %v, want the same", err)
	}
}

// FuzzAnnotations gives an author's text to each annotation in turn.
func FuzzAnnotations(f *testing.F) {
	names := []string{"on-event", "on-target-branch", "on-path-change", "on-path-change-ignore", "on-label",
		"on-cel-expression", "target-namespace", "max-keep-runs"}
	for i, seed := range []string{"[push]", "[main, release-*]", "[docs/**, *.md]", "{a&#44;b}", "[bug]",
		`"docs/**".pathChanged() && body.a.b == "c"`, "team", "5"} {
		f.Add(uint8(i), seed, "docs/a.md")
		f.Add(uint8(i+1), seed, "a&#44;b")
	}
	f.Fuzz(func(t *testing.T, which uint8, value, text string) {
		annotations := annotated("on-event", "[push]", "on-target-branch", "[main]", names[int(which)%len(names)], value)
		ev := push("refs/heads/main")
		ev.Labels, ev.Namespace, ev.Title = []string{text}, "team", text
		for _, known := range []Event{ev, changed(ev, text, "main.go")} {
			known.Body = map[string]any{"a": map[string]any{"b": text}}
			got, err := Select(known, Pipeline{Annotations: annotations})
			switch {
			case err != nil && (!cmp.Equal(got, Selection{}) || !fault.Is(err, fault.Invalid)):
				t.Errorf("Select = %+v, %v", got, err)
			case err == nil && !got.Needs.Any() && (got.Reason == "" || len(got.Reason) > 4096):
				t.Errorf("Select = %+v", got)
			case got.Needs.Body, known.Changed != nil && got.Needs.Changed:
				t.Errorf("asks for what is known: %+v", got)
			}
		}
	})
}
