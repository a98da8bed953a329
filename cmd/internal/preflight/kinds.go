// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// otherVersion is the problem of a definition that is Plumbline's.
const otherVersion = "is of another version than this binary"

// maxFields is how many missing fields a finding names.
const maxFields = 5

// definitions checks whether each of Plumbline's kinds is served with every field that this binary
// writes. A CustomResourceDefinition of an earlier version or another product drops the others
// silently. Every account may read the schemas.
func (c *Checker) definitions(ctx context.Context) []Finding {
	var all []Finding
	for _, want := range c.want.definitions {
		all = append(all, c.definition(ctx, want)...)
	}
	return all
}

func (c *Checker) definition(ctx context.Context, want definition) []Finding {
	object := fmt.Sprintf("CustomResourceDefinition %s.%s", want.Spec.Names.Plural, want.Spec.Group)
	var all []Finding
	for _, version := range want.Spec.Versions {
		served, err := c.served(ctx, want.Spec.Group, version.Name)
		if err != nil {
			return append(all,
				unknown(object, err, "let this account read discovery, as ClusterRole system:discovery does for every account"))
		}
		schema := served.kind(want.Spec.Group, version.Name, want.Spec.Names.Kind)
		if schema == nil {
			problem := fmt.Sprintf("is missing: version %s of %s is not served", version.Name, want.Spec.Names.Kind)
			all = append(all, Finding{Object: object, Problem: problem, Remedy: c.define(ctx, want), Awaited: true})
			continue
		}
		lacks := missing(version.Schema.OpenAPIV3Schema, schema, "")
		for name := range version.Subresources {
			if !served.has("/" + want.Spec.Names.Plural + "/{name}/" + name) {
				lacks = append(lacks, "subresource "+name)
			}
		}
		for _, field := range version.SelectableFields {
			if !schema.selectable(field.JSONPath) {
				lacks = append(lacks, "selectable field "+field.JSONPath)
			}
		}
		if len(lacks) == 0 {
			continue
		}
		slices.Sort(lacks)
		all = append(all, Finding{
			Object: object,
			Remedy: c.define(ctx, want) + c.restart(schema),
			// Without a field of a GitEvent, what protects from losing or repeating it is not
			// stored. A Repository may be of Pipelines-as-Code's definition.
			Awaited: want.Spec.Group == plumbline.GroupName,
			Problem: fmt.Sprintf("%s: %s lacks %s", origin(schema), version.Name, text.Some(lacks, maxFields, ", ")),
		})
	}
	return all
}

// origin says whose definition lacks fields. Pipelines-as-Code's kind Repository has a field that
// Plumbline's has not.
func origin(schema jsonSchema) string {
	if schema.child("properties").child("pipelinerun_status") == nil {
		return otherVersion
	}
	return "is that of Pipelines-as-Code: runs that need a slot of concurrency_limit wait, and Repositories have no conditions"
}

// restart returns the command that is needed after a foreign definition was replaced: a watch that
// began with it has filled the caches without the fields that it lacks.
func (c *Checker) restart(schema jsonSchema) string {
	if origin(schema) == otherVersion {
		return ""
	}
	return fmt.Sprintf("; then kubectl -n %s rollout restart deployment %s %s", c.Namespace, Controller, Receiver)
}

// define returns the command that installs a definition. The chart may leave them out.
func (c *Checker) define(ctx context.Context, want definition) string {
	file := "config/" + want.file
	command := c.apply(ctx, file)
	if !strings.HasSuffix(command, file) {
		command += "; if the values have crds.enabled: false: kubectl apply -f " + file
	}
	return command
}

// document is the part of an OpenAPI v3 document that the preflight reads.
type document struct {
	Paths      map[string]any
	Components struct{ Schemas map[string]jsonSchema }
}

// served returns the document of a group and version; an empty one if it is not served.
func (c *Checker) served(ctx context.Context, group, version string) (document, error) {
	var d document
	data, err := c.fetch(ctx, "/openapi/v3/apis/"+group+"/"+version)
	if apierrors.IsNotFound(err) {
		return d, nil
	}
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return d, fmt.Errorf("reading the schemas of %s/%s: %w", group, version, err)
	}
	return d, nil
}

// kind returns the schema of a kind; nil if there is none.
func (d document) kind(group, version, kind string) jsonSchema {
	for _, s := range d.Components.Schemas {
		names, _ := s["x-kubernetes-group-version-kind"].([]any)
		for _, name := range names {
			if n, ok := name.(map[string]any); ok && n["group"] == group && n["version"] == version && n["kind"] == kind {
				return s
			}
		}
	}
	return nil
}

// has reports whether a path with this end is served.
func (d document) has(end string) bool {
	for path := range d.Paths {
		if strings.HasSuffix(path, end) {
			return true
		}
	}
	return false
}

// jsonSchema is a JSON schema.
type jsonSchema map[string]any

func (s jsonSchema) child(name string) jsonSchema {
	child, _ := s[name].(map[string]any)
	return child
}

func (s jsonSchema) selectable(path string) bool {
	fields, _ := s["x-kubernetes-selectable-fields"].([]any)
	return slices.ContainsFunc(fields, func(field any) bool {
		f, _ := field.(map[string]any)
		return "."+strings.TrimPrefix(fmt.Sprint(f["fieldPath"]), ".") == path
	})
}

// missing returns the paths of fields in want that got drops.
func missing(want, got jsonSchema, path string) []string {
	if keeps, _ := got["x-kubernetes-preserve-unknown-fields"].(bool); keeps {
		return nil
	}
	var all []string
	for name := range want.child("properties") {
		if path == "" && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue // every kind has them, and metadata by reference
		}
		there := got.child("properties").child(name)
		if there == nil {
			all = append(all, path+"."+name)
			continue
		}
		all = append(all, missing(want.child("properties").child(name), there, path+"."+name)...)
	}
	for _, nested := range []string{"items", "additionalProperties"} {
		if inner := want.child(nested); inner != nil && got.child(nested) != nil {
			all = append(all, missing(inner, got.child(nested), path+"[]")...)
		}
	}
	return all
}
