// SPDX-License-Identifier: Apache-2.0

// Command schema writes the JSON schemas of docs/schema for editors: of a Repository, from its
// CustomResourceDefinition, and of the files below .tekton, from those of Tekton and from the
// annotations that authors write. It runs in the root of the repository.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// dialect is the newest one that yaml-language-server supports completely.
const dialect = "http://json-schema.org/draft-07/schema#"

// group is the prefix of the annotations.
const group = "pipelinesascode.tekton.dev/"

// node is a JSON schema.
type node = map[string]any

func main() {
	if err := generate("docs/schema"); err != nil {
		fmt.Fprintln(os.Stderr, "schema:", err)
		os.Exit(1)
	}
}

func generate(dir string) error {
	repository, err := repositorySchema()
	if err != nil {
		return err
	}
	tekton, err := tektonSchema()
	if err != nil {
		return err
	}
	if err := write(filepath.Join(dir, "repository.json"), repository); err != nil {
		return err
	}
	return write(filepath.Join(dir, "tekton.json"), tekton)
}

func repositorySchema() (node, error) {
	s, err := definition("config/300-crd-repositories.yaml", "v1alpha1")
	if err != nil {
		return nil, err
	}
	s = closed(s, false)
	properties := s["properties"].(node)
	properties["apiVersion"] = node{"const": group + "v1alpha1"}
	properties["kind"] = node{"const": "Repository"}
	s["$schema"], s["title"] = dialect, "Repository of Pipelines-as-Code, as Plumbline serves it"
	s["required"] = []string{"apiVersion", "kind", "metadata", "spec"}
	return s, nil
}

// tektonSchema checks the documents whose kind it knows. Others below .tekton are ignored, and
// v1beta1 has no schema here: only its annotations are checked.
func tektonSchema() (node, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tektoncd/pipeline").Output()
	if err != nil {
		return nil, fmt.Errorf("finding Tekton's module: %w", err)
	}
	crds := filepath.Join(strings.TrimSpace(string(out)), "config", "300-crds")
	annotated, err := annotations()
	if err != nil {
		return nil, err
	}
	metadata := node{"properties": node{"annotations": annotated}}
	all := []node{{"if": isKind("PipelineRun", ""), "then": node{"properties": node{"metadata": metadata}}}}
	specs := node{}
	for _, kind := range []string{"Task", "Pipeline", "PipelineRun"} {
		s, err := definition(filepath.Join(crds, "300-"+strings.ToLower(kind)+".yaml"), "v1")
		if err != nil {
			return nil, err
		}
		s = closed(s, true)
		specs[kind] = s["properties"].(node)["spec"]
		s["properties"].(node)["spec"] = reference(kind)
		all = append(all, node{"if": isKind(kind, "tekton.dev/v1"), "then": s})
	}
	return node{
		"$schema": dialect, "title": "Pipelines below .tekton", "type": "object", "allOf": all,
		"required": []string{"apiVersion", "kind"}, "definitions": nested(specs),
	}, nil
}

func reference(kind string) node { return node{"$ref": "#/definitions/" + kind} }

// nested refers to the spec of a Pipeline and of a Task where they are inlined: Tekton's own
// schemas take anything there.
func nested(specs node) node {
	properties := func(s any) node { return s.(node)["properties"].(node) }
	properties(specs["PipelineRun"])["pipelineSpec"] = reference("Pipeline")
	for _, list := range []string{"tasks", "finally"} {
		task := properties(properties(specs["Pipeline"])[list].(node)["items"])
		task["taskSpec"], task["pipelineSpec"] = reference("Task"), reference("Pipeline")
	}
	for _, ofCustomTask := range []string{"apiVersion", "kind", "metadata", "spec"} {
		properties(specs["Task"])[ofCustomTask] = node{}
	}
	return specs
}

// isKind is true for documents of a kind; "" is any version.
func isKind(kind, version string) node {
	properties := node{"kind": node{"const": kind}}
	if version != "" {
		properties["apiVersion"] = node{"const": version}
	}
	return node{"properties": properties, "required": []string{"kind"}}
}

// definition returns the schema in a CustomResourceDefinition, without the status.
func definition(file, version string) (node, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Name   string
				Schema struct {
					OpenAPIV3Schema node `yaml:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, v := range crd.Spec.Versions {
		if s := v.Schema.OpenAPIV3Schema; v.Name == version && s["properties"] != nil {
			delete(s["properties"].(node), "status")
			return s, nil
		}
	}
	return nil, fmt.Errorf("%s has no schema of version %s", file, version)
}

// closed makes a JSON schema of a structural one: fields that it does not name are mistakes. With
// placeholders, any scalar may also be written as {{ name }}, which YAML reads as a mapping.
func closed(s node, placeholders bool) node {
	out := node{}
	keeps, _ := s["x-kubernetes-preserve-unknown-fields"].(bool)
	for key, value := range s {
		switch {
		case strings.HasPrefix(key, "x-kubernetes-"), key == "format":
		case key == "properties":
			fields := node{}
			for name, field := range value.(node) {
				fields[name] = closed(field.(node), placeholders)
			}
			out[key] = fields
		case key == "items" || key == "additionalProperties":
			if inner, ok := value.(node); ok {
				value = closed(inner, placeholders)
			}
			out[key] = value
		default:
			out[key] = value
		}
	}
	if _, open := out["additionalProperties"]; out["properties"] != nil && !open && !keeps {
		out["additionalProperties"] = false
	}
	if t, _ := out["type"].(string); placeholders && t != "" && t != "object" && t != "array" {
		out["type"] = []string{t, "object"}
	}
	return out
}

// constant is an annotation in the package that names them.
var constant = regexp.MustCompile(`(?m)^\s+\w+ += prefix \+ "([a-z-]+)"$`)

// annotations returns the schema of a PipelineRun's annotations. It fails if the described ones are
// not in the code, or if the code has another on-… annotation.
func annotations() (node, error) {
	source, err := filepath.Glob("pkg/apis/pipelinesascode/*.go")
	if err != nil {
		return nil, err
	}
	known := map[string]bool{"task": true, "pipeline": true} // pkg/pipeline/resolve/reference.go
	for _, file := range source {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, match := range constant.FindAllSubmatch(data, -1) {
			known[string(match[1])] = true
		}
	}
	fields, names := node{}, []string{}
	for name, says := range described() {
		if !known[name] {
			return nil, fmt.Errorf("the code has no annotation %s%s", group, name)
		}
		names = append(names, group+name)
		fields[group+name] = node{"type": []string{"string", "object"}, "description": says}
	}
	for name := range known {
		if _, has := described()[name]; strings.HasPrefix(name, "on-") && !has {
			return nil, fmt.Errorf("the annotation %s%s needs a description", group, name)
		}
	}
	slices.Sort(names)
	tasks := "^" + regexp.QuoteMeta(group) + "task-[0-9]+$"
	return node{
		"type": "object", "properties": fields,
		"patternProperties":    node{tasks: node{"type": "string", "description": described()["task"]}},
		"additionalProperties": node{"type": []string{"string", "object"}},
		"propertyNames": node{"anyOf": []node{
			{"enum": names}, {"pattern": tasks}, {"not": node{"pattern": "^" + regexp.QuoteMeta(group)}},
		}},
	}, nil
}

func write(file string, s node) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(s); err != nil {
		return err
	}
	return os.WriteFile(file, text.Bytes(), 0o644)
}
