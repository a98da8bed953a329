// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"cmp"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
)

const header = "apiVersion: tekton.dev/v1\nkind: PipelineRun\n"

func load(texts ...string) *Set {
	names := []string{".tekton/a.yaml", ".tekton/b.yaml", ".tekton/c.yaml"}
	var files []git.File
	for i, text := range texts {
		files = append(files, git.File{Path: names[i], Data: []byte(text)})
	}
	return Load(files)
}

func TestDefinitionsAreFoundHoweverTheFileIsWritten(t *testing.T) {
	run := header + "metadata: {name: build}\n"
	tests := map[string]struct {
		text string
		want []Definition
	}{
		"an empty file":                {"", nil},
		"only separators":              {"---\n---\n", nil},
		"only comments":                {"# a\n---\n  # b\n", nil},
		"other kinds":                  {"apiVersion: v1\nkind: Secret\n---\nkind: Secret\n", nil},
		"a list":                       {"- apiVersion: tekton.dev/v1\n", nil},
		"no separator":                 {run, []Definition{{Document: 0, Name: "build"}}},
		"a separator before and after": {"---\n" + run + "---\n", []Definition{{Document: 0, Name: "build"}}},
		"Windows line ends": {
			strings.ReplaceAll("---\n"+run+"---\nkind: x\n", "\n", "\r\n"), []Definition{{Document: 0, Name: "build"}},
		},
		"a byte order mark":               {"\ufeff" + run, []Definition{{Document: 0, Name: "build"}}},
		"a byte order mark and a comment": {"\ufeff# x\n---\n" + run, []Definition{{Document: 0, Name: "build"}}},
		"the second document":             {"kind: x\n---\n" + run, []Definition{{Document: 1, Name: "build"}}},
		"empty documents are not counted": {"---\n---\n# x\n---\n" + run, []Definition{{Document: 0, Name: "build"}}},
		"generateName": {
			header + "metadata: {generateName: build-}\n", []Definition{{Document: 0, Name: "build-"}},
		},
		"a name that ends in a dash": {
			header + "metadata: {name: build-}\n", []Definition{{Document: 0, Name: "build-"}},
		},
		"names that differ by a dash": {
			run + "---\n" + header + "metadata: {generateName: build-}\n",
			[]Definition{{Document: 0, Name: "build"}, {Document: 1, Name: "build-"}},
		},
		"name goes before generateName": {
			header + "metadata: {generateName: x-, name: build}\n", []Definition{{Document: 0, Name: "build"}},
		},
		"a name with a variable": {
			header + "metadata: {name: {{ repo_name }}-build}\n", []Definition{{Document: 0, Name: "{{ repo_name }}-build"}},
		},
		"a separator in a block of a script": {
			header + "metadata: {name: build}\nspec:\n  x: |\n    ---\n    y\n", []Definition{{Document: 0, Name: "build"}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for i := range tt.want {
				tt.want[i].File, tt.want[i].Annotations = ".tekton/a.yaml", map[string]string{}
			}
			if diff := gocmp.Diff(tt.want, load(tt.text).Definitions()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestErrorsNameTheLineOfTheFile(t *testing.T) {
	tests := map[string]struct{ text, message string }{
		"a syntax error in the second document": {
			"kind: x\n---\nkind: y\nmetadata:\n\tname: x\n",
			".tekton/a.yaml:5:1: this is not YAML: a tab is not allowed here: indent with spaces",
		},
		"a placeholder in the parser's message stands as the author wrote it": {
			"kind: *{{ sender }}\n", ".tekton/a.yaml:1:7: this is not YAML: unknown anchor '{{ sender }}' referenced",
		},
		"a key that is no text": {
			"kind: x\n---\n\n? [a]\n: b\n", ".tekton/a.yaml:4: a key must be a single word or text",
		},
		"a run without a name after comments": {
			"kind: x\n---\n# one\n# two\n" + header,
			".tekton/a.yaml:5: this PipelineRun has neither metadata.name nor metadata.generateName: give it one",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			definitions := load(tt.text).Definitions()
			if len(definitions) != 1 || !fault.Is(cmp.Or(definitions[0].Err, definitions[0].BadName), fault.Invalid) {
				t.Fatalf("definitions %+v, want one with an Invalid fault", definitions)
			}
			if got := cmp.Or(definitions[0].Err, definitions[0].BadName).Error(); got != tt.message {
				t.Errorf("message\n%s\nwant\n%s", got, tt.message)
			}
		})
	}
}

func TestABrokenDocumentLeavesTheOthersAlone(t *testing.T) {
	set := load(header+"metadata: {name: first}\n---\n{\n---\n"+header+"metadata: {name: second}\n", "[",
		header+"metadata: {name: third}\n")
	var names []string
	for _, def := range set.Definitions() {
		if def.Err == nil {
			names = append(names, def.Name)
		}
	}
	if diff := gocmp.Diff([]string{"first", "second", "third"}, names); diff != "" {
		t.Error(diff)
	}
	if got := len(set.Definitions()); got != 5 {
		t.Errorf("%d definitions, want 5", got)
	}
}

func TestAnnotationsThatDecideAreReplacedInACopy(t *testing.T) {
	const branch = "pipelinesascode.tekton.dev/on-target-branch"
	set := load(header + "metadata:\n  name: build\n  annotations: {" + branch +
		": '{{ target_branch }}', {{ x }}: '{{unknown}}', other: '{{ body.x }}'}\n")
	def := set.Definitions()[0]
	got, err := set.Annotations(def, scopeOf(t, map[string]string{"target_branch": "main", "x": "y"}))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{branch: "main", "{{ x }}": "{{unknown}}", "other": "{{ body.x }}"}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if def.Annotations[branch] != "{{ target_branch }}" {
		t.Errorf("the definition's own annotations changed: %v", def.Annotations)
	}
}

func TestADefinitionOfAnotherSetIsNotTheAuthorsFault(t *testing.T) {
	_, err := load().Render(t.Context(), Definition{File: "x"}, scopeOf(t, nil), nil)
	if err == nil || fault.Is(err, fault.Invalid) {
		t.Errorf("Render = %v, want an error that is not Invalid", err)
	}
}

func TestOneTaskInlinedTooOftenIsRefused(t *testing.T) {
	set := load(hostileFiles()["one task used 2000 times"])
	_, err := set.Render(t.Context(), set.Definitions()[0], scopeOf(t, nil), nil)
	if fault.Of(err) == nil || fault.Of(err).Reason != "TooLarge" {
		t.Errorf("Render = %v, want TooLarge", err)
	}
}

func TestMorePlaceholdersThanFitAreRefused(t *testing.T) {
	set := load(header + "metadata: {name: x}\nspec: {params: [{name: a, value: '" + strings.Repeat("{{ sender }}", 1000) +
		"'}]}\n")
	_, err := set.Render(t.Context(), set.Definitions()[0],
		scopeOf(t, map[string]string{"sender": strings.Repeat("x", 10000)}), nil)
	if fault.Of(err) == nil || fault.Of(err).Reason != "TooLarge" {
		t.Errorf("Render = %v, want TooLarge", err)
	}
}
