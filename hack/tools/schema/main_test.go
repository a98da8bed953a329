// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

const root = "../../.."

func compile(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile(filepath.Join(root, "docs", "schema", name))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var (
	fence = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	// placeholder is one that stands for a whole value. An editor reads it as a mapping in a
	// mapping; Go's reader refuses that.
	placeholder = regexp.MustCompile(`(?m): \{\{[^}]*\}\}( *#.*)?$`)
	header      = regexp.MustCompile(`(?m)^kind: (PipelineRun|Pipeline|Task|Repository)$`)
)

// documents reads the documents in a text.
func documents(text string) (all []any, err error) {
	decoder := yaml.NewDecoder(strings.NewReader(placeholder.ReplaceAllString(text, ": {}")))
	for {
		var document any
		if err := decoder.Decode(&document); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if document != nil {
			all = append(all, document)
		}
	}
}

// examples returns the files of the repository that users or tests write, by a name for people.
func examples(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range fence.FindAllStringSubmatch(string(data), -1) {
			if header.MatchString(block[1]) {
				all[fmt.Sprintf("%s, block %d", filepath.Base(page), i+1)] = block[1]
			}
		}
	}
	// The other folders of testdata have what is no YAML before the placeholders are replaced.
	for _, pattern := range []string{"plan/testdata/.tekton", "pipeline/resolve/testdata/references/in", "pipeline/resolve/testdata/v1beta1/in"} {
		files, err := filepath.Glob(filepath.Join(root, "pkg", pattern, "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all[file] = string(data)
		}
	}
	return all
}

// Each complete example in the documentation and in the tests is valid.
func TestExamplesAreValid(t *testing.T) {
	pipelines, repository := compile(t, "tekton.json"), compile(t, "repository.json")
	count := map[any]int{}
	for name, text := range examples(t) {
		all, err := documents(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, document := range all {
			fields, _ := document.(map[string]any)
			schema := pipelines
			if fields["kind"] == "Repository" {
				schema = repository
			}
			count[fields["kind"]]++
			if err := schema.Validate(document); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, kind := range []string{"PipelineRun", "Pipeline", "Task", "Repository"} {
		if count[kind] == 0 {
			t.Errorf("no example of a %s was found", kind)
		}
	}
}

const run = `
apiVersion: tekton.dev/v1
kind: PipelineRun
metadata:
  name: build
  annotations:
    pipelinesascode.tekton.dev/on-event: "[push]"
    pipelinesascode.tekton.dev/on-target-branch: "[main]"
    pipelinesascode.tekton.dev/task-1: git-clone
    example.com/team: a
spec:
  pipelineSpec:
    tasks:
      - name: build
        retries: 1
        taskRef: {name: git-clone}
`

const served = `
apiVersion: pipelinesascode.tekton.dev/v1alpha1
kind: Repository
metadata: {name: app}
spec:
  url: https://github.com/acme/app
  concurrency_limit: 2
  settings: {pipelinerun_provenance: source}
`

// The schemas find a misspelt name, and a value that the field cannot have.
func TestMistakesAreFound(t *testing.T) {
	for _, c := range []struct{ schema, text, old, mistake string }{
		{"tekton.json", run, "", ""},
		{"tekton.json", run, "on-event", "on-events"},
		{"tekton.json", run, "on-target-branch", "on-target-brunch"},
		{"tekton.json", run, "task-1", "task-a"},
		{"tekton.json", run, "tekton.dev/v1\n", "tekton.dev/v1beta1\n"}, // of which only annotations are checked
		{"tekton.json", run, "pipelineSpec", "pipelinespecs"},
		{"tekton.json", run, "retries: 1", "retries: many"},
		{"tekton.json", run, "taskRef", "taskReff"},
		{"tekton.json", run, "retries: 1", "retries: {{ attempts }}"},
		{"repository.json", served, "", ""},
		{"repository.json", served, "concurrency_limit: 2", "concurrency_limit: 0"},
		{"repository.json", served, "concurrency_limit", "concurrencyLimit"},
		{"repository.json", served, "provenance: source", "provenance: target"},
		{"repository.json", served, "v1alpha1", "v1"},
	} {
		valid := c.old == "" || strings.Contains(c.mistake, "beta1") || strings.Contains(c.mistake, "{{")
		all, err := documents(strings.Replace(c.text, c.old, c.mistake, 1))
		if err != nil || len(all) != 1 {
			t.Fatalf("%s: %d documents, %v", c.mistake, len(all), err)
		}
		if err := compile(t, c.schema).Validate(all[0]); (err == nil) != valid {
			t.Errorf("%s instead of %s: %v; want it to be valid: %v", c.mistake, c.old, err, valid)
		}
	}
}
