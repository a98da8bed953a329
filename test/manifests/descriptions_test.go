// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// schema is the part of a schema that kubectl explain shows.
type schema struct {
	Description          string
	Properties           map[string]schema
	Items                *schema
	AdditionalProperties *schema
}

// definition is a CustomResourceDefinition.
type definition struct {
	Spec struct {
		Names    struct{ Kind string }
		Versions []struct {
			Schema struct {
				OpenAPIV3Schema schema `json:"openAPIV3Schema"`
			}
		}
	}
}

// notActedOn begins the description of a field that is stored and has no effect.
const notActedOn = "Not acted on by Plumbline. "

func kinds() map[string]reflect.Type {
	return map[string]reflect.Type{
		"Repository":      reflect.TypeFor[pacv1alpha1.Repository](),
		"GitEvent":        reflect.TypeFor[v1alpha1.GitEvent](),
		"EventPayload":    reflect.TypeFor[v1alpha1.EventPayload](),
		"RepositoryClaim": reflect.TypeFor[v1alpha1.RepositoryClaim](),
		"TombstonePage":   reflect.TypeFor[v1alpha1.TombstonePage](),
	}
}

// schemas returns the schema of each kind.
func schemas(t *testing.T) map[string]schema {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(config, "300-crd-*.yaml"))
	must(t, err)
	all := map[string]schema{}
	for _, file := range files {
		for _, document := range documents(t, file) {
			var crd definition
			must(t, yaml.Unmarshal(document, &crd))
			for _, version := range crd.Spec.Versions {
				all[crd.Spec.Names.Kind] = version.Schema.OpenAPIV3Schema
			}
		}
	}
	if len(all) != len(kinds()) {
		t.Fatalf("config/ defines %v, want %v", slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(kinds())))
	}
	return all
}

// fields returns the fields of a struct that our packages define, by their names in YAML.
func fields(of reflect.Type) map[string]reflect.StructField {
	all := map[string]reflect.StructField{}
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || !strings.HasPrefix(of.PkgPath(), "github.com/plumbline-ci/") {
		return all
	}
	for i := range of.NumField() {
		field := of.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if options == "inline" {
			maps.Copy(all, fields(field.Type))
		} else if name != "-" && name != "metadata" {
			all[name] = field
		}
	}
	return all
}

// names collects the names that only Go has for fields: those with a capital inside.
func names(of reflect.Type, into map[string]bool) {
	for _, field := range fields(of) {
		if mixed.MatchString(field.Name) {
			into[field.Name] = true
		}
		names(field.Type, into)
	}
}

var (
	mixed = regexp.MustCompile(`^[A-Z][A-Za-z]*[a-z][A-Za-z]*[A-Z]`)
	word  = regexp.MustCompile(`[A-Za-z]+`)
	// local is a path below docs/, or a code that only a page of this repository explains.
	local = regexp.MustCompile(`(^|[^/\w])docs/|\.md\b|\b[A-Z]-?\d+\b|\bpkg/`)
)

// walk calls visit for each field of ours below a schema.
func walk(path string, s schema, of reflect.Type, visit func(path string, s schema, field reflect.StructField)) {
	for s.Items != nil || s.AdditionalProperties != nil {
		if s.Items != nil {
			s = *s.Items
			continue
		}
		s = *s.AdditionalProperties
	}
	for name, field := range fields(of) {
		property, exists := s.Properties[name]
		if !exists {
			continue
		}
		visit(path+"."+name, property, field)
		walk(path+"."+name, property, field.Type, visit)
	}
}

// kubectl explain describes each field, by the names that people write, and without pages that they
// do not have.
func TestFieldsAreDescribed(t *testing.T) {
	goNames := map[string]bool{}
	for _, kind := range kinds() {
		names(kind, goNames)
	}
	delete(goNames, "ServiceAccounts") // is the plural of a kind, too
	for kind, root := range schemas(t) {
		visited := 0
		walk(kind, root, kinds()[kind], func(path string, s schema, field reflect.StructField) {
			visited++
			says := s.Description
			if s.Items != nil {
				says += "\n" + s.Items.Description
			}
			first := word.FindString(s.Description)
			switch {
			case strings.TrimSpace(s.Description) == "":
				t.Errorf("%s has no description", path)
			case first == field.Name || first == field.Type.Name():
				t.Errorf("%s: the description begins with Go's name %s", path, first)
			case local.MatchString(says):
				t.Errorf("%s: the description refers to %q, which users of kubectl do not have", path, local.FindString(says))
			}
			for _, name := range word.FindAllString(says, -1) {
				if goNames[name] {
					t.Errorf("%s: the description has Go's name %s", path, name)
				}
			}
		})
		if visited == 0 {
			t.Errorf("%s: no field was found", kind)
		}
	}
}

// The fields that say that they have no effect are those that the condition Settings names.
func TestFieldsNotActedOnSaySo(t *testing.T) {
	root := schemas(t)["Repository"]
	var says []string
	walk("Repository", root, kinds()["Repository"], func(path string, s schema, _ reflect.StructField) {
		if strings.HasPrefix(s.Description, notActedOn) {
			says = append(says, strings.TrimPrefix(path, "Repository.spec."))
		} else if strings.Contains(strings.ToLower(s.Description), "not acted on") {
			t.Errorf("%s does not begin with %q: %s", path, notActedOn, s.Description)
		}
	})
	slices.Sort(says)
	says = slices.DeleteFunc(says, func(path string) bool { // a part of a field that says so
		return slices.ContainsFunc(says, func(whole string) bool { return strings.HasPrefix(path, whole+".") })
	})

	var spec pacv1alpha1.RepositorySpec
	fill(reflect.ValueOf(&spec).Elem())
	ignored := slices.DeleteFunc(spec.IgnoredFields(), func(path string) bool { // for one service only
		return strings.ContainsAny(path, " :")
	})
	if diff := cmp.Diff(ignored, says); diff != "" {
		t.Errorf("fields that have no effect (-IgnoredFields +descriptions):\n%s", diff)
	}
}

// fill sets everything to a value that is not zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	default:
		v.SetInt(1)
	}
}
