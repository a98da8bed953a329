// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pacv1alpha1 "github.com/plumbline-ci/plumbline/pkg/apis/pipelinesascode/v1alpha1"
)

// Each field of the Repository of Pipelines-as-Code is in our definition, or in the list of fields
// that are not served.
func TestFieldsOfPaCAreThereOrListed(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("../../pkg/apis/pipelinesascode/v1alpha1/testdata/pac-fields.txt"))
	must(t, err)
	ours := map[string]bool{}
	paths("", schemas(t)["Repository"], ours)
	for path := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n") {
		listed := slices.ContainsFunc(pacv1alpha1.UnservedFields(), func(field pacv1alpha1.Setting) bool {
			rest, below := strings.CutPrefix(strings.TrimPrefix(path, "spec."), field.Name)
			return below && (rest == "" || strings.ContainsAny(rest[:1], ".["))
		})
		if !strings.HasPrefix(path, "#") && !ours[path] && !listed {
			t.Errorf("%s of Pipelines-as-Code is neither in our definition nor in UnservedFields", path)
		}
	}
}

func paths(path string, s schema, into map[string]bool) {
	for name, property := range s.Properties {
		into[strings.TrimPrefix(path+"."+name, ".")] = true
		paths(path+"."+name, property, into)
	}
	if s.Items != nil {
		paths(path+"[]", *s.Items, into)
	}
}

// The fields that the condition Settings names and those of the migration page are the same.
func TestUnservedFieldsAreNamed(t *testing.T) {
	var spec pacv1alpha1.RepositorySpec
	fill(reflect.ValueOf(&spec).Elem())
	var listed []string
	for _, field := range pacv1alpha1.UnservedFields() {
		if field.Treatment == pacv1alpha1.Unserved && field.Name != "pipelinerun_status" { // a status that PaC writes
			listed = append(listed, field.Name)
		}
	}
	slices.Sort(listed)
	named := slices.DeleteFunc(spec.IgnoredFields(), func(path string) bool { // for one service only
		return strings.ContainsAny(path, " :")
	})
	if diff := cmp.Diff(listed, named); diff != "" {
		t.Errorf("-UnservedFields +IgnoredFields:\n%s", diff)
	}
}
