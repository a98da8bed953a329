// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

// withValue is the event of testdata/templates with a value in the payload, a param and a secret.
func withValue(t testing.TB, value string) template.Facts {
	t.Helper()
	facts := factsOf(t, "testdata/templates/facts.yaml")
	facts.Body["title"] = value
	facts.Body["list"] = []any{value, "two"}
	facts.Body["nested"] = map[string]any{"a": value}
	facts.Headers["X-GitHub-Event"] = value
	for i := range facts.Params {
		if facts.Params[i].Name == "sender" || facts.Params[i].Name == "registry" {
			facts.Params[i].Value = value
		}
	}
	for ref := range facts.Secrets {
		facts.Secrets[ref] = value
	}
	return facts
}

// comparing returns a check that a value from the payload, a param or a secret changes texts and
// nothing else, whether it is a secret or not.
func comparing(t testing.TB) func(t *testing.T, value string) {
	t.Helper()
	set := Load(readFiles(t, "testdata/templates/in"))
	want := shapes(t, set, harmless)
	return func(t *testing.T, value string) {
		got := shapes(t, set, value)
		expected := maps.Clone(want)
		maps.DeleteFunc(expected, func(file string, _ any) bool { return got[file] == nil && strings.Contains(value, "$(") })
		if diff := cmp.Diff(expected, got); diff != "" {
			t.Errorf("with %q: -want +got\n%s", value, diff)
		}
	}
}

// shapes renders the definitions of a set, fills them, and empties their texts.
func shapes(t testing.TB, set *Set, value string) map[string]any {
	t.Helper()
	scope, err := template.New(withValue(t, value))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{}
	for _, def := range set.Definitions() {
		run, err := set.Render(t.Context(), def, scope, shelf("none"))
		if f := fault.Of(err); f != nil && f.Reason == "SecretHoldsVariable" && strings.Contains(value, "$(") {
			continue // what cannot be placed without becoming a variable is refused
		}
		if err != nil {
			t.Fatalf("%s#%d with %q: %v", def.File, def.Document, value, err)
		}
		data, err := json.Marshal(run)
		if err != nil {
			t.Fatal(err)
		}
		all[def.File] = emptied(decoded(t, template.Fill(data, scope.Secrets())))
	}
	return all
}

func emptied(v any) any {
	switch v := v.(type) {
	case string:
		return ""
	case []any:
		for i := range v {
			v[i] = emptied(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = emptied(v[key])
		}
	}
	return v
}

func TestAValueOfThePayloadBringsNoStructure(t *testing.T) {
	compare := comparing(t)
	for _, value := range hostileValues() {
		compare(t, value)
	}
}

func FuzzPayloadIsText(f *testing.F) {
	for _, value := range hostileValues() {
		f.Add(value)
	}
	compare := comparing(f)
	f.Fuzz(func(t *testing.T, value string) {
		if value == "" || len(value) > 10000 {
			t.Skip("an empty value lets fields be left out")
		}
		compare(t, value)
	})
}

// FuzzPlaceholder writes an author's placeholder in every kind of scalar: it ends in a PipelineRun
// or an Invalid fault, and an event with other values leaves the structure as it is.
func FuzzPlaceholder(f *testing.F) {
	manners := []string{"%s", `"%s"`, "'%s'", "x %s", "|\n    %s\n", "|2-\n    a\n    %s\n", ">+\n    a\n    %s\n\n    b",
		"[%s]", "{k: %s, j: '}}'}", "!!str %s"}
	for i, name := range []string{
		"revision", " body.title ", "body.list", "headers['X']", `headers["X-GitHub-Event"]`, `cel: "a" + 'b'`, "cel: ''",
		`cel: \"x\"`, "cel: ''x''", "cel: a #b", "secret", "body.x == 'y",
		"cel: [body.title]", "files.all", ".Values.x", "cel:", "body", "\nbody.number\n",
	} {
		f.Add(i, name)
		f.Add(i+1, name)
	}
	f.Fuzz(func(t *testing.T, manner int, name string) {
		text := header + "metadata: {name: x}\nspec:\n  other: " + fmt.Sprintf(manners[uint(manner)%uint(len(manners))],
			"{{"+name+"}}") + "\n"
		loadAndRender(t, text)
		doc := &document{file: "x", local: true, text: text}
		if doc.parse(&budget{}) != nil || doc.tree == nil {
			return
		}
		var shapes []any
		for _, value := range []string{harmless, "a\"b'c: d\n{{ x }}"} {
			facts := withValue(t, value)
			facts.Params = append(facts.Params,
				template.Param{Name: "secret", Secret: &template.SecretRef{Name: "vault", Key: "password"}})
			scope, err := template.New(facts)
			if err != nil {
				t.Fatal(err)
			}
			tree, err := newExpander(scope).expand(doc)
			if err != nil {
				tree = "refused"
			}
			data, err := json.Marshal(tree)
			if err != nil {
				t.Fatal(err)
			}
			shapes = append(shapes, emptied(decoded(t, data)))
		}
		// What computes may yield another kind of value for another event; what only reads may not.
		if diff := cmp.Diff(shapes[0], shapes[1]); diff != "" && !strings.ContainsAny(name, "?=<>!(|&[+") {
			t.Errorf("%s: %s", text, diff)
		}
	})
}
