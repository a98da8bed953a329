// SPDX-License-Identifier: Apache-2.0

package pac

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/openshift-pipelines/pipelines-as-code/pkg/params/settings"
	"sigs.k8s.io/yaml"
)

// copied returns the lines of a list that Plumbline's own module has.
func copied(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../../pkg", file))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(string(data)), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "#")
	})
}

func TestConfigMapKeys(t *testing.T) {
	keys := []string{settings.HubURLKey, settings.HubCatalogNameKey, settings.HubCatalogTypeKey}
	of := reflect.TypeFor[settings.Settings]()
	for i := range of.NumField() {
		if key := of.Field(i).Tag.Get("json"); key != "" {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	if got := copied(t, "config/testdata/pac-keys.txt"); !slices.Equal(got, keys) {
		t.Errorf("pac-keys.txt has\n%q, Pipelines-as-Code has\n%q", got, keys)
	}
}

// schema is the part of a schema that names fields.
type schema struct {
	Properties map[string]schema
	Items      *schema
}

func TestRepositoryFields(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", //nolint:gosec // no input
		"github.com/openshift-pipelines/pipelines-as-code").Output()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "config/300-repositories.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema schema `json:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(data, &definition); err != nil || len(definition.Spec.Versions) != 1 {
		t.Fatalf("%d versions, %v", len(definition.Spec.Versions), err)
	}
	var fields []string
	var walk func(path string, of schema)
	walk = func(path string, of schema) {
		for name, property := range of.Properties {
			fields = append(fields, strings.TrimPrefix(path+"."+name, "."))
			walk(path+"."+name, property)
		}
		if of.Items != nil {
			walk(path+"[]", *of.Items)
		}
	}
	walk("", definition.Spec.Versions[0].Schema.OpenAPIV3Schema)
	slices.Sort(fields)
	got := copied(t, "apis/pipelinesascode/v1alpha1/testdata/pac-fields.txt")
	slices.Sort(got)
	if !slices.Equal(got, fields) {
		t.Errorf("pac-fields.txt has\n%q, Pipelines-as-Code has\n%q", got, fields)
	}
}
