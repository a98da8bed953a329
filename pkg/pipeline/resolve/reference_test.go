// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

func TestRelative(t *testing.T) {
	const page = "https://example.com/a/pipelines/p.yaml"
	tests := map[string]struct{ pipeline, task, want string }{
		"below a page":       {page, "task.yaml", "https://example.com/a/pipelines/task.yaml"},
		"beside a page":      {page, "../tasks/t.yaml", "https://example.com/a/tasks/t.yaml"},
		"with a dot":         {page, "./t.yaml", "https://example.com/a/pipelines/t.yaml"},
		"not above the host": {page, "../../../../t.yaml", "https://example.com/t.yaml"},
		"a query is kept": {
			page + "?token=a%2Fb", "t.yaml", "https://example.com/a/pipelines/t.yaml?token=a%2Fb",
		},
		"a query of its own wins": {page + "?token=x", "t.yaml?y", "https://example.com/a/pipelines/t.yaml?y"},
		"an escaped slash stays one": {
			"https://git.example/o/r/blob/a%2Fb/p/p.yaml", "../t.yaml", "https://git.example/o/r/blob/a%2Fb/t.yaml",
		},
		"a whole address stays":                 {page, "https://other.example/t.yaml", "https://other.example/t.yaml"},
		"another hub stays":                     {page, "acme://t:1", "acme://t:1"},
		"a name on the hub stays":               {page, "git-clone", "git-clone"},
		"a name and version on the hub stays":   {page, "git-clone:0.9", "git-clone:0.9"},
		"beside a path":                         {"p/pipelines/p.yaml", "../tasks/t.yaml", "p/tasks/t.yaml"},
		"outside of the repository stays there": {"p/p.yaml", "../../t.yaml", "../t.yaml"},
		"a pipeline of the hub joins nothing":   {"release", "tasks/t.yaml", "tasks/t.yaml"},
		"nor one of another hub":                {"acme://release", "tasks/t.yaml", "tasks/t.yaml"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := relative(test.pipeline, test.task); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// recorder remembers what is asked for and answers with a Task called t.
type recorder struct {
	asked []string
	err   error
}

func (r *recorder) Read(_ context.Context, kind Kind, ref string) (git.File, error) {
	r.asked = append(r.asked, string(kind)+" "+ref)
	text := "apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: t}\nspec: {steps: [{name: s, image: i}]}\n"
	return git.File{Path: ref, Data: []byte(text)}, r.err
}

func annotated(annotations string) *Set {
	return load(header + "metadata:\n  name: x\n  annotations:\n" + annotations +
		"\nspec: {pipelineSpec: {tasks: [{name: a, taskRef: {name: t}}]}}\n")
}

// A value takes part in one reference and never becomes two, unless it is all the author wrote.
func TestVariablesBringNoReferenceOfTheirOwn(t *testing.T) {
	const task = "    pipelinesascode.tekton.dev/task: "
	vars := map[string]string{"source_branch": "a,https://evil.example/t.yaml", "list": "[a, b]"}
	tests := map[string]struct {
		annotation string
		want       []string
	}{
		"one word": {
			task + "tasks/{{ source_branch }}/t.yaml", []string{"Task tasks/a,https://evil.example/t.yaml/t.yaml"},
		},
		"in a list": {
			task + "'[x/{{source_branch}}, b&#44;c]'", []string{"Task x/a,https://evil.example/t.yaml", "Task b,c"},
		},
		"unknown ones":   {task + "'[{{ who }}, y]'", []string{"Task {{ who }}", "Task y"}},
		"the whole list": {task + "'{{ list }}'", []string{"Task a", "Task b"}},
		"in order": {"    pipelinesascode.tekton.dev/task-10: d\n    pipelinesascode.tekton.dev/task-2: c\n    pipelinesascode.tekton.dev/task-x: e\n" +
			task + "'[a, b]'", []string{"Task a", "Task b", "Task c", "Task d"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set, asked := annotated(test.annotation), &recorder{}
			if _, err := set.Render(t.Context(), set.Definitions()[0], scopeOf(t, vars), asked); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, asked.asked); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What keeps a reference from being read is the caller's error as it is: an outage must not become
// the author's fault.
func TestAnOutageOfAReferencePassesThrough(t *testing.T) {
	set := annotated("    pipelinesascode.tekton.dev/task: t")
	for _, class := range []fault.Class{fault.Transient, fault.Throttled, fault.Operator, fault.Invalid} {
		cause := &fault.Error{Class: class, Reason: "Why", Message: "why"}
		_, err := set.Render(t.Context(), set.Definitions()[0], scopeOf(t, nil), &recorder{err: cause})
		if f := fault.Of(err); f == nil || f.Class != class ||
			f.Message != ".tekton/a.yaml:1: annotation pipelinesascode.tekton.dev/task: why" {
			t.Errorf("%s: %v", class, err)
		}
	}
	if _, err := set.Render(t.Context(), set.Definitions()[0], scopeOf(t, nil),
		&recorder{err: errors.New("x")}); !fault.Is(err, fault.Transient) {
		t.Errorf("an unclassified error: %v, want Transient", err)
	}
}

func TestTooManyReferences(t *testing.T) {
	var names []string
	for i := range maxReferences + 1 {
		names = append(names, fmt.Sprintf("t%d", i))
	}
	set, asked := annotated("    pipelinesascode.tekton.dev/task: '["+strings.Join(names, ",")+"]'"), &recorder{}
	_, err := set.Render(t.Context(), set.Definitions()[0], scopeOf(t, nil), asked)
	if f := fault.Of(err); f == nil || f.Reason != "TooManyReferences" || len(asked.asked) != maxReferences {
		t.Errorf("%v after %d", err, len(asked.asked))
	}
}

func TestWithoutReferencesWhatIsNotLocalIsLeftToTekton(t *testing.T) {
	set := load(header +
		"metadata: {name: x, annotations: {pipelinesascode.tekton.dev/pipeline: p}}\nspec: {pipelineRef: {name: p}}\n")
	run, err := set.Render(t.Context(), set.Definitions()[0], scopeOf(t, nil), nil)
	if err != nil || run.Spec.PipelineRef == nil || run.Spec.PipelineRef.Name != "p" {
		t.Errorf("%+v, %v", run, err)
	}
	set = annotated("    pipelinesascode.tekton.dev/task: t")
	run, err = set.Render(t.Context(), set.Definitions()[0], scopeOf(t, nil), nil)
	if err != nil || run.Spec.PipelineSpec.Tasks[0].TaskRef == nil {
		t.Errorf("%+v, %v", run, err)
	}
}

// A value is part of the reference it stands in: it brings neither another reference nor a
// placeholder of its own.
func FuzzEntries(f *testing.F) {
	for _, value := range []string{"main", "a,b", "[x]", "{{ y }}", "\x000\x00", "a b", "]", "&#44;"} {
		f.Add("[tasks/{{ x }}, git-clone]", value)
		f.Add("{{ x }}/{{x}}.yaml", value)
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		read := func(vars map[string]string) int {
			r := &renderer{scope: knowing(t, vars)}
			entries, err := r.entries("task", text)
			if err != nil {
				return -1
			}
			return len(entries)
		}
		whole := template.Whole(strings.TrimSpace(text))
		if before, after := read(map[string]string{"x": "a"}), read(map[string]string{"x": value}); !whole &&
			before != after {
			t.Errorf("%q has %d entries, with %q for x %d", text, before, value, after)
		}
	})
}
