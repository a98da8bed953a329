// SPDX-License-Identifier: Apache-2.0

package caret

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/cmd/plumb/internal/terminal"
	"github.com/plumbline-ci/plumbline/pkg/git"
)

const file = ".tekton/a.yaml"

// twoDocuments has two documents. The second one starts at line 9.
const twoDocuments = `# first
apiVersion: tekton.dev/v1
kind: PipelineRun
metadata:
  name: first
  annotations:
    pipelinesascode.tekton.dev/on-event: "[push"
--- # the second
apiVersion: tekton.dev/v1
kind: PipelineRun
metadata:
  name: {{ body.x }}
  labels: {größe: "{{ cel: no + 1 }}"}
  annotations:
    pipelinesascode.tekton.dev/on-event: "[push"
    pipelinesascode.tekton.dev/on-cel-expression: |
      event == "push" &&
        taget == "x"
    pipelinesascode.tekton.dev/on-comment: ["a", 1]
    pipelinesascode.tekton.dev/task: [tasks/b.yaml]
spec:
  pipelineRef: {name: nowhere}
  pipelineSpec:
    tasks:
    - name: ok
      taskRef: {name: there}
    - name: 3
      taskRef:
        name: gone
`

func TestFind(t *testing.T) {
	const twice = "metadata:\n  name: '{{ cel: x }}'\n  annotations:\n    pipelinesascode.tekton.dev/on-event: '[{{ cel: x }}]'\n"
	const quoted = "apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata:\n  name: a\n  annotations: {pipelinesascode.tekton.dev/on-cel-expression: \"tag == 'größe'\"}\n"
	sources := Read([]git.File{
		{Path: file, Data: []byte(twoDocuments)}, {Path: "tasks/b.yaml", Data: []byte("a: b\n  c: d\n")},
		{Path: "quoted.yaml", Data: []byte(quoted)},
		{Path: "twice.yaml", Data: []byte(twice)}, {Path: "tab.yaml", Data: []byte("a:\n\tb: c\n")},
	})
	for name, test := range map[string]struct {
		in       string
		document int
		message  string
		want     string // what is shown below the first line, and the place
	}{
		"an annotation of the first document": {file, 0,
			file + ": pipeline first: annotation pipelinesascode.tekton.dev/on-event has the value \"[push\", which is wrong",
			file + ":7:42"},
		"the same of the second": {
			file, 1, file + ": pipeline x: annotation pipelinesascode.tekton.dev/on-event: the pattern is none", file + ":15:42",
		},
		"a place in an expression of several lines": {
			file, 1, file + ": pipeline x: on-cel-expression: 2:3: taget is not defined", file + ":18:9",
		},
		"a place beyond its end": {
			file, 1, file + ": pipeline x: on-cel-expression: 99:3: oops", file + ":16:51",
		},
		"a place in quotes": {
			"quoted.yaml", 0, "quoted.yaml: pipeline a: on-cel-expression: 1:8: no", "quoted.yaml:5:71",
		},
		"a placeholder and the place in it": {
			file, 1, file + ":9: {{ cel: no + 1 }}: 1:4: no is not defined", file + ":13:31",
		},
		"a placeholder": {
			file, 1, file + ":9: the value of {{ body.x }} is missing", file + ":12:9",
		},
		"a placeholder of an annotation": {"twice.yaml", 0,
			"twice.yaml:1: annotation pipelinesascode.tekton.dev/on-event: {{ cel: x }}: 1:1: no", "twice.yaml:4:52"},
		"a place that is said": {
			file, 1, file + ":27:13: spec.pipelineSpec.tasks[1].name must be text", file + ":27:13",
		},
		"a place in another file": {
			file, 1, file + ":9: annotation pipelinesascode.tekton.dev/task: tasks/b.yaml:2:3: spec: no", "tasks/b.yaml:2:3",
		},
		"a place in a file that was not read": {file, 1,
			file + ":9: annotation pipelinesascode.tekton.dev/task: https://example.com/c.yaml:2:3: spec: no", file + ":20:38"},
		"a Task that is not there": {
			file, 1, file + ":9: pipeline task x refers to Task gone, which neither a file has", file + ":29:15",
		},
		"a Pipeline that is not there": {
			file, 1, file + ":9: PipelineRun x refers to Pipeline nowhere, which neither a file has", file + ":22:23",
		},
		"another file, by way of an annotation": {file, 1,
			file + ":9: annotation pipelinesascode.tekton.dev/task: tasks/b.yaml:2: this is not YAML: oops", "tasks/b.yaml:2:3"},
		"a reference that cannot be read": {file, 1,
			file + ":9: annotation pipelinesascode.tekton.dev/task: tasks/c.yaml: tasks/c.yaml does not exist", file + ":20:38"},
		"a document as a whole": {
			file, 1, file + ":9: with its variables replaced it is larger than 3 bytes", file + ":9:1",
		},
		"the file as a whole":      {file, 0, file + " has 9 bytes, at most 3 are read: split it", file},
		"a file that was not read": {".tekton", 0, ".tekton holds 2000 PipelineRuns", ".tekton"},
		"a line of a file that is no YAML": {
			"tab.yaml", 0, "tab.yaml:2: this is not YAML: found a tab", "tab.yaml:2:2",
		},
		"a line beyond the end": {"tab.yaml", 0, "tab.yaml:99: this is not YAML: oops", "tab.yaml:99:1"},
	} {
		t.Run(name, func(t *testing.T) {
			place := sources.Find(test.in, test.document, test.message)
			shown := sources.Show(terminal.Terminal{}, place, test.message)
			first, _, _ := strings.Cut(shown, ": error: ")
			if first != test.want {
				t.Errorf("got %s, want %s\n%s", first, test.want, shown)
			}
		})
	}
}

// Find returns the place of an expression's mistake for each way in which YAML writes a text.
func TestFindInScalars(t *testing.T) {
	const above = "metadata:\n  annotations:\n    pipelinesascode.tekton.dev/on-cel-expression: "
	for name, test := range map[string]struct {
		text, message, want string
	}{
		"quotes that are escaped":          {`"event == \"x\" || foo(1)"`, "1:20", "a.yaml:3:73"},
		"a letter that is escaped":         {`"\u0061 == \U00000061 || foo(1)"`, "1:11", "a.yaml:3:76"},
		"single quotes":                    {`'event == ''x'' || foo(1)'`, "1:20", "a.yaml:3:73"},
		"no quotes, over two lines":        {"event == 'x' ||\n      foo(1)", "1:20", "a.yaml:4:10"},
		"quotes, over two lines, and CRLF": {"\"event == 'x' ||\r\n      foo(1)\"\r", "1:20", "a.yaml:4:10"},
		"quotes, with an empty line":       {"\"event == 'x' ||\n\n      foo(1)\"", "2:4", "a.yaml:5:10"},
		"a folded text":                    {">-\n      event == 'x' ||\n      foo(1)", "1:20", "a.yaml:5:10"},
		"a text line by line":              {"|\n      event == 'x' ||\n        foo(1)", "2:6", "a.yaml:5:12"},
		"a placeholder in front":           {`"'{{ cel: event }}' == \"x\" || foo(1)"`, "1:33", "a.yaml:3:86"},
		"lines that a folded text indents": {">-\n      event == 'x' ||\n        foo(1)", "2:6", "a.yaml:5:12"},
		"empty lines of a folded text":     {">-\n      event == 'x' ||\n\n      foo(1)", "2:4", "a.yaml:6:10"},
		"several of them":                  {">-\n      event == 'x' ||\n\n\n      foo(1)", "3:4", "a.yaml:7:10"},
		"empty lines and an indented one":  {">-\n      event == 'x' ||\n\n        foo(1)", "3:6", "a.yaml:6:12"},
		"an empty line at the beginning":   {"|\n\n      event == 'x' ||\n      foo(1)", "3:4", "a.yaml:6:10"},
		"a place behind the end":           {"'foo('", "1:5", "a.yaml:3:56"},
	} {
		t.Run(name, func(t *testing.T) {
			sources := Read([]git.File{{Path: "a.yaml", Data: []byte(above + test.text + "\n")}})
			place := sources.Find("a.yaml", 0, "a.yaml: pipeline a: on-cel-expression: "+test.message+": oops")
			if shown := sources.Show(terminal.Terminal{}, place, "oops"); !strings.HasPrefix(shown, test.want+": ") {
				t.Errorf("got %s, want %s", shown, test.want)
			}
		})
	}
}

// A terminal shows an author's text, but does not interpret its control characters.
func TestShowCommandsNoTerminal(t *testing.T) {
	sources := Read([]git.File{{Path: "a\nb.yaml", Data: []byte("a: \x1b[31m\u009b\u202e\xff\tb\n")}})
	want := "a b.yaml:1:4: error: oops  [0m  no\n 1 | a:  [31m  \ufffd\tb\n   |    ^\n"
	if diff := cmp.Diff(want, sources.Show(terminal.Terminal{}, Place{"a\nb.yaml", 1, 4}, "oops\n\x1b[0m\u009b\u2066no")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestShow(t *testing.T) {
	sources := Read([]git.File{{Path: file, Data: []byte("a: größe {{ x }}\r\n\tb: c\n")}})
	for name, test := range map[string]struct {
		at            Place
		message, want string
	}{
		"a column that is said": {
			Place{file, 1, 10}, file + ":1:10: oops", file + ":1:10: error: oops\n 1 | a: größe {{ x }}\n   |          ^\n",
		},
		"a line with a caret": {Place{file, 1, 10}, file + ":1: {{ x }}: no",
			file + ":1:10: error: {{ x }}: no\n 1 | a: größe {{ x }}\n   |          ^\n"},
		"a tab is a tab":  {Place{file, 2, 2}, file + ": oops", file + ":2:2: error: oops\n 2 | \tb: c\n   | \t^\n"},
		"without a place": {Place{File: file}, file + " has 9 bytes", file + ": error: " + file + " has 9 bytes\n"},
		"of another file": {Place{File: ".tekton"}, ".tekton holds 2000", ".tekton: error: .tekton holds 2000\n"},
		"beyond the end":  {Place{file, 99, 1}, file + ":99: oops", file + ":99:1: error: oops\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, sources.Show(terminal.Terminal{}, test.at, test.message)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
