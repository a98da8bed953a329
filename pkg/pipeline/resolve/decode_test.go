// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/pipeline/template"
)

// The field decides whether a placeholder without quotes is a number, a boolean or a text.
func TestAPlainPlaceholderIsWhatItsFieldWants(t *testing.T) {
	const task = "spec: {pipelineSpec: {tasks: [{name: a, retries: %s, taskSpec: {steps: [{name: s, image: i}]}}]}}\n"
	const optional = "spec: {pipelineSpec: {workspaces: [{name: a, optional: %s}]}}\n"
	const label = "  labels: {x: %s}\n"
	vars := map[string]string{"three": "3", "minus": "-3", "hex": "0x10", "octal": "010", "half": "0.5", "yes": "yes",
		"true": "true", "text": "a\"3", "empty": ""}
	tests := map[string]struct {
		field, value, want string
	}{
		"a number":                           {task, "{{ three }}", `"retries":3`},
		"a negative one":                     {task, "{{ minus }}", `"retries":-3`},
		"a quoted one is a text":             {task, `"{{ three }}"`, "must be a whole number, not text"},
		"one with a tag is a text":           {task, `!!str {{ three }}`, "must be a whole number, not text"},
		"one that is part of a text":         {task, `{{ three }}0`, "must be a whole number, not text"},
		"one that is hexadecimal":            {task, "{{ hex }}", "must be a whole number, not text"},
		"one with a zero in front":           {task, "{{ octal }}", "must be a whole number, not text"},
		"a fraction":                         {task, "{{ half }}", "must be a whole number, not the number 0.5"},
		"a text":                             {task, "{{ text }}", "must be a whole number, not text"},
		"nothing":                            {task, "{{ empty }}", "must be a whole number, not text"},
		"a boolean":                          {optional, "{{ true }}", `"optional":true`},
		"a word that was a boolean once":     {optional, "{{ yes }}", "must be true or false, not text"},
		"a number is no boolean":             {optional, "{{ three }}", "must be true or false, not text"},
		"a number in a field for text":       {label, "{{ three }}", `"x":"3"`},
		"a boolean in a field for text":      {label, "{{ true }}", `"x":"true"`},
		"a zero in front in a field of text": {label, "{{ octal }}", `"x":"010"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			set := load(header + "metadata:\n  name: x\n" + fmt.Sprintf(tt.field, tt.value))
			run, err := set.Render(t.Context(), set.Definitions()[0], scopeOf(t, vars), nil)
			got := fmt.Sprint(err)
			if err == nil {
				data, err := json.Marshal(run)
				if err != nil {
					t.Fatal(err)
				}
				got = string(data)
			}
			if !strings.Contains(got, tt.want) {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

func TestManyPlainNumbersAreRead(t *testing.T) {
	text := header + "metadata: {name: x}\nspec:\n  pipelineSpec:\n    tasks:\n"
	for i := range 200 {
		text += fmt.Sprintf("    - {name: t%d, retries: {{ three }}, taskSpec: {steps: [{name: s, image: i}]}}\n", i)
	}
	set := load(text)
	run, err := set.Render(t.Context(), set.Definitions()[0], scopeOf(t, map[string]string{"three": "3"}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if tasks := run.Spec.PipelineSpec.Tasks; len(tasks) != 200 || tasks[199].Retries != 3 {
		t.Errorf("%d tasks, the last %+v", len(tasks), tasks[len(tasks)-1])
	}
}

// What is missing is asked for at once, by what is rendered and by what decides, and by nothing
// else.
func TestWhatMustBeKnownIsAskedFor(t *testing.T) {
	set := load(header + `metadata:
  name: x
  annotations:
    pipelinesascode.tekton.dev/on-target-branch: "[{{ body.branch }}]"
    pipelinesascode.tekton.dev/on-label: "{{ files.all }}"
    other: "{{ pull_request_number }}"
spec:
  params:
  - {name: a, value: "{{ body.x }} {{ pull_request_number }}"}
  - {name: b, value: {{ files.all }}}
  pipelineSpec: {tasks: [{name: a, taskRef: {name: t}}]}
---
apiVersion: tekton.dev/v1
kind: Task
metadata: {name: t}
spec: {steps: [{name: s, image: "{{ password }}"}]}
`)
	vault := template.SecretRef{Name: "vault", Key: "password"}
	scope, err := template.New(template.Facts{Params: []template.Param{{Name: "password", Secret: &vault}}})
	if err != nil {
		t.Fatal(err)
	}
	def := set.Definitions()[0]
	_, err = set.Annotations(def, scope)
	asked(t, err, template.Needs{Body: true, Changed: true})
	_, err = set.Render(t.Context(), def, scope, nil)
	asked(t, err, template.Needs{Body: true, Changed: true, Pulls: true})
	none := int64(0)
	scope.Learn(template.Facts{
		Body: map[string]any{"branch": "main", "x": "y"}, Files: map[string]any{"all": []string{"a"}}, MergedPull: &none,
	})
	_, err = set.Render(t.Context(), def, scope, nil)
	asked(t, err, template.Needs{Secrets: []template.SecretRef{vault}})
	scope.Learn(template.Facts{Secrets: map[template.SecretRef]string{vault: "correct horse"}})
	run, err := set.Render(t.Context(), def, scope, nil)
	if err != nil {
		t.Fatal(err)
	}
	if image := run.Spec.PipelineSpec.Tasks[0].TaskSpec.Steps[0].Image; !template.Held(image, scope.Secrets()) {
		t.Errorf("the image is %s", image)
	}
	annotations, err := set.Annotations(def, scope)
	if err != nil || annotations["pipelinesascode.tekton.dev/on-target-branch"] != "[main]" ||
		annotations["other"] != "{{ pull_request_number }}" {
		t.Errorf("%v, %v", annotations, err)
	}
}

func asked(t *testing.T, err error, want template.Needs) {
	t.Helper()
	needs, _ := template.NeedsOf(err)
	if diff := cmp.Diff(want, needs); diff != "" {
		t.Errorf("%v:\n%s", err, diff)
	}
}

// A Task whose own name cannot be read belongs to no pipeline. The other pipelines run anyway.
func TestUnreadableTaskNameFailsNoOtherPipeline(t *testing.T) {
	set := load(header + "metadata: {name: x}\nspec: {pipelineSpec: {tasks: [{name: a, taskRef: {name: t}}]}}\n" +
		"---\napiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: '{{ cel: unknown }}'}\nspec: {steps: [{name: s, image: i}]}\n" +
		"---\napiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: {{ cel: \"t\" }}}\nspec: {steps: [{name: s, image: i}]}\n")
	if _, err := set.Render(t.Context(), set.Definitions()[0], scopeOf(t, nil), shelf("none")); err != nil {
		t.Error(err)
	}
	bad := load(header +
		"metadata: {name: x, annotations: {pipelinesascode.tekton.dev/on-cel-expression: '{{ cel: unknown }}'}}\n")
	_, err := bad.Annotations(bad.Definitions()[0], scopeOf(t, nil))
	const want = ".tekton/a.yaml:1: annotation pipelinesascode.tekton.dev/on-cel-expression: {{ cel: unknown }}: 1:1: unknown is not defined"
	if !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// kubernetesReads is a document as the API server's reader of YAML makes JSON of it, "" if it
// refuses it.
func kubernetesReads(text string) string {
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return ""
	}
	return string(data)
}

func TestPlainWordsAreReadAsKubernetesReadsThem(t *testing.T) {
	words := []string{
		"y", "Y", "n", "N", "yes", "Yes", "YES", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF", "true", "True",
		"TRUE", "tRue", "false", "yEs",
		"null", "Null", "~", "nUll", "1", "-1", "+1", "0", "00", "01", "07", "08", "0o7", "0x1F", "0b11", "1_000", "1e3",
		"1.5", "1.", "-.5", "1.50", "1:30", "1e-7", "1e21",
		"123456789.125", "-0", "-0.0", "-0o7", "2001-01-01", "=", "18446744073709551615", "123456789012345678901234567890",
		`"y"`, "'on'", "'1'", "!!str y", "!!bool yes",
		`!!bool "off"`, "!!binary YQ==", "!!float 1", "!x y",
	}
	for _, word := range words {
		for kind, text := range map[string]string{"value": "a: " + word + "\n", "key": word + ": v\n"} {
			t.Run(kind+" "+word, func(t *testing.T) {
				doc := &document{file: "x", text: text}
				got := ""
				if err := doc.parse(&budget{}); err == nil {
					data, err := json.Marshal(doc.tree)
					if err != nil {
						t.Fatal(err)
					}
					got = string(data)
				} else if !fault.Is(err, fault.Invalid) {
					t.Errorf("%v is not Invalid", err)
				}
				if want := kubernetesReads(text); got != want {
					t.Errorf("%q is read as %s, and by Kubernetes as %s", text, got, want)
				}
			})
		}
	}
}
