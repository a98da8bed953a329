// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"reflect"
	"testing"

	"github.com/tektoncd/pipeline/pkg/apis/config"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
)

// accounts calls set with each field of a value that names a ServiceAccount; slices and pointers
// are made on the way.
func accounts(v reflect.Value, path string, set func(path string, name reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		accounts(v.Elem(), path, set)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			accounts(v.Index(0), path+"[]", set)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			switch {
			case field.Name == "ServiceAccountName":
				set(path+"."+field.Name, v.Field(i))
			case field.IsExported() && field.Name != "PipelineSpec": // which holds the definitions of tasks
				accounts(v.Field(i), path+"."+field.Name, set)
			}
		}
	}
}

// An untrusted run has the ServiceAccount of the setting, or Tekton's default: never one that its
// definition names.
func TestConfineTakesNoServiceAccountOfTheDefinition(t *testing.T) {
	for _, c := range []struct{ setting, tekton, want string }{
		{"", "default", "default"},
		{"", "pipeline", "pipeline"},
		{"guest", "pipeline", "guest"},
		{"", "", ""}, // Kubernetes gives the pods the namespace's account called default
	} {
		run := &pipelinev1.PipelineRun{}
		run.Labels = map[string]string{}
		named := 0
		accounts(reflect.ValueOf(&run.Spec).Elem(), "spec",
			func(_ string, name reflect.Value) { name.SetString("deployer"); named++ })
		if named != 2 || len(run.Spec.TaskRunSpecs) != 1 || run.Spec.TaskRunSpecs[0].ServiceAccountName != "deployer" {
			t.Fatalf("%d fields name a ServiceAccount, want taskRunTemplate and taskRunSpecs", named)
		}
		run.Spec.TaskRunSpecs[0].PipelineTaskName = "build"
		run.Spec.PipelineSpec = &pipelinev1.PipelineSpec{Tasks: []pipelinev1.PipelineTask{{Name: "build"}, {Name: "other"}}}
		Confine(run, c.setting)
		run.SetDefaults(config.ToContext(t.Context(), &config.Config{
			Defaults: &config.Defaults{DefaultServiceAccount: c.tekton}, FeatureFlags: &config.FeatureFlags{},
		}))
		for _, task := range []string{"build", "other"} {
			if got := run.GetTaskRunSpec(task).ServiceAccountName; got != c.want {
				t.Errorf("setting %q, Tekton's default %q: task %s has the ServiceAccount %q, want %q", c.setting, c.tekton, task,
					got, c.want)
			}
		}
	}
}
