// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/cel"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

// harmless is a value that occurs in no test file.
const harmless = "HARMLESS"

// hostileValues are names that an untrusted user may give a branch or a pull request, and worse.
func hostileValues() []string {
	return []string{
		` `, `"`, `'`, `\`, "\n", "\r\n", "a\nb: c", "- x", "{", "}", "[", "]", "{{", "}}", "{{ revision }}", "{{ sender }}",
		"x\"\n  serviceAccountName: admin", "'\n- name: evil\n  value: 'x", "|", "> folded", "# comment", "x # comment",
		"&anchor",
		"*alias", "!!int 1", "~", "null", "true", "no", "1", "1e9", "0x10", "2024-01-01", ": ", "? key", "---",
		"\n---\nkind: PipelineRun",
		"...", "%YAML 1.1", "@", "`", "\t", "\x00", "\x1b[31m", "\u2028", "\ufeff", "\xff\xfe", "日本語",
		strings.Repeat("a", 5000),
		"$(params.x)", "${IFS}", "`id`", "placeholder0123456789abcdefx0z", "<<", "=", ",", ", evil: yes", `\u0022`,
		`","x":"y`,
	}
}

// standardVariables gives every variable the value.
func standardVariables(value string) map[string]string {
	vars := goldenVariables()
	for name := range vars {
		vars[name] = value
	}
	return vars
}

func TestAValueIsNeverAnythingButText(t *testing.T) {
	for _, dir := range []string{"testdata/local/in", "testdata/shapes/in", "testdata/v1beta1/in"} {
		set := Load(readFiles(t, dir))
		for i, value := range hostileValues() {
			t.Run(fmt.Sprintf("%s/%d", dir, i), func(t *testing.T) { compareWithHarmless(t, set, value) })
		}
	}
}

// compareWithHarmless renders the set with the value and with a harmless one. It checks that only
// strings differ, and those only by the value.
func compareWithHarmless(t *testing.T, set *Set, value string) {
	t.Helper()
	for _, def := range set.Definitions() {
		if def.Err != nil {
			continue
		}
		placed := strings.ReplaceAll(value, "$(", "$ (") // which Tekton and the kubelet do not read as a variable
		want := strings.ReplaceAll(string(rendered(t, set, def, harmless)), harmless, inJSON(t, placed))
		if diff := cmp.Diff(decoded(t, []byte(want)), decoded(t, rendered(t, set, def, value))); diff != "" {
			t.Errorf("%s#%d with %q: -want +got\n%s", def.File, def.Document, value, diff)
		}
	}
}

func rendered(t *testing.T, set *Set, def Definition, value string) []byte {
	t.Helper()
	run, err := set.Render(t.Context(), def, scopeOf(t, standardVariables(value)), shelf("none"))
	if err != nil {
		t.Fatalf("%s#%d with %q: %v", def.File, def.Document, value, err)
	}
	data, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// inJSON is a value as it stands between the quotes of a JSON string.
func inJSON(t *testing.T, value string) string {
	t.Helper()
	data, err := json.Marshal(strings.ToValidUTF8(value, "\ufffd"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data[1 : len(data)-1])
}

func decoded(t testing.TB, data []byte) any {
	t.Helper()
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

func FuzzValueIsText(f *testing.F) {
	for _, value := range hostileValues() {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if value == "" || len(value) > 10000 {
			t.Skip("an empty value lets fields be left out, and the texts of webhooks are cut")
		}
		compareWithHarmless(t, Load(readFiles(t, "testdata/local/in")), value)
	})
}

func FuzzLoad(f *testing.F) {
	for _, text := range hostileFiles() {
		if len(text) < 2000 {
			f.Add(text)
		}
	}
	f.Add("apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata: {name: '{{ revision }}'}\nspec: {pipelineSpec: {tasks: [{taskRef: {name: x}}]}}\n")
	f.Add("apiVersion: tekton.dev/v1beta1\nkind: PipelineRun\nmetadata: {name: x}\nspec: {pipelineRef: {name: x}, resources: [{name: x}]}\n" +
		"---\napiVersion: tekton.dev/v1beta1\nkind: Pipeline\nmetadata: {name: x}\nspec: {tasks: [{taskRef: {name: x}}], resources: [{name: x}]}\n" +
		"---\napiVersion: tekton.dev/v1beta1\nkind: Task\nmetadata: {name: x}\nspec: {resources: {inputs: [{name: x}]}, steps: [{name: x}]}\n")
	f.Fuzz(func(t *testing.T, text string) { loadAndRender(t, text) })
}

// knowing is a scope in which everything is known.
func knowing(t testing.TB, vars map[string]string) *template.Scope {
	t.Helper()
	scope := scopeOf(t, vars)
	none := int64(0)
	scope.Learn(template.Facts{
		Body:       map[string]any{"number": 7.0, "list": []any{"a", "b"}, "draft": false, "title": "t"},
		Files:      cel.ChangedFiles([]string{"a"}, nil, nil, nil),
		MergedPull: &none,
	})
	return scope
}

// loadAndRender checks that whatever an author writes ends in a PipelineRun or an Invalid fault.
func loadAndRender(t *testing.T, text string) {
	t.Helper()
	set := Load([]git.File{{Path: ".tekton/x.yaml", Data: []byte(text)}})
	for _, def := range set.Definitions() {
		scope := knowing(t, standardVariables("x"))
		if _, err := set.Annotations(def, scope); err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("annotations: %v is not Invalid", err)
		}
		run, err := set.Render(t.Context(), def, scope, shelf("none"))
		if (run == nil) == (err == nil) {
			t.Errorf("Render = %v, %v", run, err)
		}
		if err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%v is not Invalid", err)
		}
	}
}

// hostileFiles are what an author might write to keep a worker busy or to fill its memory.
func hostileFiles() map[string]string {
	const run = "apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata: {name: x}\nspec:\n"
	const size = maxFile - 1000
	bomb := run + "  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 12; i++ {
		bomb += fmt.Sprintf("  a%d: &a%d [%s]\n", i, i,
			strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	empty := strings.NewReplacer("x, ", "[], ", ", x]", ", []]").Replace(bomb)
	tasks := run + "  pipelineSpec:\n    tasks:\n" + strings.Repeat("    - {name: t, taskRef: {name: big}}\n", 2000) +
		"---\napiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: big}\nspec: {description: '" + strings.Repeat("x",
		size/2) + "'}\n"
	return map[string]string{
		"nested aliases":              bomb,
		"nested aliases without text": empty,
		"an alias to itself":          run + "  a: &a [*a]\n",
		"merging itself":              run + "  a: &a {<<: *a}\n",
		"aliases of one long text": run + "  a: &a " + strings.Repeat("x", size/2) + "\n  b: [" + strings.Repeat("*a,",
			size/8) + "]\n",
		"aliases of one long key": run + "  a: &a {" + strings.Repeat("x", 900) + ": 1}\n  b: [" + strings.Repeat("*a,",
			25000) + "]\n",
		"deep flow lists":           run + "  a: " + strings.Repeat("[", size),
		"deep flow mappings":        run + "  a: " + strings.Repeat("{a: ", size/8) + strings.Repeat("}", size/8),
		"deep block lists":          run + "  a:\n" + strings.Repeat("- ", size/2),
		"many short values":         run + "  a: [" + strings.Repeat("a,", size/2) + "]",
		"many comments":             run + strings.Repeat("#\n", size/2),
		"many values with comments": run + "  a:\n" + strings.Repeat("  - # x\n", size/8),
		"many documents":            strings.Repeat("---\na\n", size/6),
		"many broken documents":     strings.Repeat("---\n[\n", 400),
		"many placeholders":         run + "  a: " + strings.Repeat("{{aa}}", size/6),
		"many known placeholders":   run + "  a: " + strings.Repeat("{{sender}}", size/10),
		"an opening without end":    run + "  a: '" + strings.Repeat("{{", size/2) + "'",
		"one task used 2000 times":  tasks,
		"no text at all":            "",
		"a tag that is wrong":       run + "  a: !!int x\n  b: !!binary '*'\n  c: !!float []\n",
		"a number larger than any": run +
			"  a: 123456789012345678901234567890\n  b: .inf\n  c: .nan\n  d: -0x8000000000000000\n",
		"a key that is a list":          run + "  ? [a]\n  : b\n",
		"a merge of text":               run + "  a: {<<: x}\n",
		"not UTF-8":                     run + "  a: \xff\xfe\n",
		"a control character":           run + "  a: \x01\n",
		"UTF-16":                        "\xfe\xff\x00a\x00:\x00 \x00b",
		"metadata that is a list":       "apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata: [x]\n",
		"a name that is a number":       "apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata: {name: 1}\n",
		"a name that is a dash":         "apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata: {generateName: '-'}\n",
		"annotations that are a list":   "apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata: {name: a, annotations: [x]}\n",
		"a spec that is text":           "apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata: {name: a}\nspec: x\n",
		"a task that is null":           run + "  pipelineSpec: {tasks: [null, {taskRef: null}]}\n",
		"an old run without a spec":     "apiVersion: tekton.dev/v1beta1\nkind: PipelineRun\nmetadata: {name: a}\nspec: null\n",
		"an old task that is null":      "apiVersion: tekton.dev/v1beta1\nkind: PipelineRun\nmetadata: {name: a}\nspec: {pipelineSpec: {tasks: [null, {taskSpec: {}}]}}\n",
		"placeholders that look nested": run + "  a: '{{{ sender }}}'\n  b: {c: {{ sender }}}\n",
	}
}

func TestHostileFilesEndSoonAsAnInvalidFaultOrAPipelineRun(t *testing.T) {
	for name, text := range hostileFiles() {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			loadAndRender(t, text)
			if took := time.Since(start); took > time.Minute {
				t.Errorf("took %s", took)
			}
		})
	}
}

func TestADocumentThatIsTooLargeOnceItIsReadIsRefused(t *testing.T) {
	files := hostileFiles()
	for _, name := range []string{
		"nested aliases", "nested aliases without text", "an alias to itself", "merging itself", "aliases of one long text",
		"aliases of one long key",
		"many short values",
	} {
		definitions := load(files[name]).Definitions()
		if len(definitions) != 1 || fault.Of(definitions[0].Err) == nil || fault.Of(definitions[0].Err).Reason != "BadYAML" {
			t.Errorf("%s: definitions %.200v, want one with the fault BadYAML", name, definitions)
		}
	}
}

func TestAFileThatIsTooLargeIsRefusedAsAWhole(t *testing.T) {
	definitions := Load([]git.File{{Path: "big.yaml", Data: make([]byte, maxFile+1)}}).Definitions()
	if len(definitions) != 1 || fault.Of(definitions[0].Err).Reason != "FileTooLarge" ||
		definitions[0].Name != "big.yaml" {
		t.Errorf("definitions %+v, want one with the fault FileTooLarge", definitions)
	}
}

func TestRenderingChangesNothingInTheSet(t *testing.T) {
	set := Load(readFiles(t, "testdata/local/in"))
	before := maps.Clone(set.Definitions()[0].Annotations)
	first := describe(t, set, template.Facts{Variables: goldenVariables()}, shelf("none"))
	describe(t, set, template.Facts{Variables: standardVariables("other")}, shelf("none"))
	if diff := cmp.Diff(first, describe(t, set, template.Facts{Variables: goldenVariables()}, shelf("none"))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, set.Definitions()[0].Annotations); diff != "" {
		t.Error(diff)
	}
}

// The search for the line of a syntax error is bounded: it takes many times as long as reading the
// document.
func TestTheLineOfASyntaxErrorIsLookedForInABoundedText(t *testing.T) {
	document := "a: b\n" + strings.Repeat("# c\n", 10_000) + "d: *e\n---\n"
	definitions := load(strings.Repeat(document, 10)).Definitions()
	if len(definitions) != 10 {
		t.Fatalf("%d definitions, want 10", len(definitions))
	}
	for i, definition := range definitions {
		found := strings.Contains(definition.Err.Error(), ":4: this is not YAML: unknown anchor 'e'") // the column
		if want := i < maxSearched/len(document); found != want {
			t.Errorf("document %d: %v, found: %t, want %t", i, definition.Err, found, want)
		}
	}
}
