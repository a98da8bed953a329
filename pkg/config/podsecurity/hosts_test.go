// SPDX-License-Identifier: Apache-2.0

package podsecurity

import (
	"reflect"
	"strings"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// handlers calls found for each probe action and hook action that a value can hold. It creates the
// pointers and lists that lead there, and does not enter a recursive type twice.
func handlers(v reflect.Value, path string, within []reflect.Type, found func(path string, host *string)) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		handlers(v.Elem(), path, within, found)
		v.SetZero()
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		handlers(v.Index(0), path+"[]", within, found)
		v.SetZero()
	case reflect.Struct:
		switch action := v.Addr().Interface().(type) {
		case *corev1.HTTPGetAction:
			found(path, &action.Host)
			return
		case *corev1.TCPSocketAction:
			found(path, &action.Host)
			return
		}
		for _, t := range within {
			if t == v.Type() {
				return
			}
		}
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				handlers(v.Field(i), path+"."+field.Name, append(within, v.Type()), found)
			}
		}
	}
}

// The kubelet calls the host of a probe or hook from the node's network, where a cloud's metadata
// service is. Kubernetes' baseline refuses every host, in every place that can have one.
func TestPodSecurityRefusesHostsOfProbesAndHooks(t *testing.T) {
	run := &pipelinev1.PipelineRun{}
	places := map[string]bool{}
	limits := Limits{PodSecurity: Baseline, Setting: "the setting"}
	handlers(reflect.ValueOf(&run.Spec).Elem(), "spec", nil, func(path string, host *string) {
		places[path] = true
		if err := Check(run, "x", limits); err != nil {
			t.Errorf("%s without a host: %v", path, err)
		}
		for _, given := range []string{"169.254.169.254", "127.0.0.1", "$(params.host)"} {
			*host = given
			for _, level := range []string{Baseline, Restricted} {
				err := Check(run, "x", Limits{PodSecurity: level, Setting: "the setting"})
				if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), `.host is "`+given+`"`) {
					t.Errorf("%s of %s at %s: %v, want it refused", path, given, level, err)
				}
			}
			if err := Check(run, "x", Limits{ServiceAccounts: []string{"builder"}}); err != nil {
				t.Errorf("%s without Pod Security limits: %v", path, err)
			}
		}
		*host = ""
	})
	for _, of := range []string{"LivenessProbe", "ReadinessProbe", "StartupProbe"} {
		for _, action := range []string{"HTTPGet", "TCPSocket"} {
			if path := "spec.PipelineSpec.Tasks[].TaskSpec.TaskSpec.Sidecars[]." + of + ".ProbeHandler." + action; !places[path] {
				t.Errorf("%s was not tried", path)
			}
		}
	}
	for _, of := range []string{"PostStart", "PreStop"} {
		for _, action := range []string{"HTTPGet", "TCPSocket"} {
			if path := "spec.PipelineSpec.Finally[].TaskSpec.TaskSpec.Sidecars[].Lifecycle." + of + "." + action; !places[path] {
				t.Errorf("%s was not tried", path)
			}
		}
	}
}
