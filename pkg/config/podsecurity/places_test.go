// SPDX-License-Identifier: Apache-2.0

package podsecurity

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tektoncd/pipeline/pkg/apis/pipeline/pod"
	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// forbidden sets a value that the level "baseline" forbids, where a type can hold one, and returns
// whether it can.
func forbidden(place any) bool {
	yes := true
	switch place := place.(type) {
	case *corev1.HTTPGetAction:
		place.Host = "169.254.169.254" // the metadata service of a cloud, which the kubelet would call
	case *corev1.TCPSocketAction:
		place.Host = "$(params.host)"
	case *corev1.SecurityContext:
		place.Privileged = &yes
	case *corev1.PodSecurityContext:
		place.SELinuxOptions = &corev1.SELinuxOptions{User: "root"}
	case *corev1.Volume:
		place.HostPath = &corev1.HostPathVolumeSource{}
	case *corev1.ContainerPort:
		place.HostPort = 80
	default:
		return false
	}
	return true
}

// places calls found for each place of a value that can hold something forbidden, with a function
// that sets it. It creates the pointers and lists that lead there, and enters no recursive type
// twice.
func places(v reflect.Value, path string, within []reflect.Type, found func(path string, set func())) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		places(v.Elem(), path, within, found)
		v.SetZero()
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		places(v.Index(0), path+"[]", within, found)
		v.SetZero()
	case reflect.Struct:
		if forbidden(reflect.New(v.Type()).Interface()) {
			found(path, func() { forbidden(v.Addr().Interface()) })
			v.SetZero()
			return
		}
		if template, is := v.Addr().Interface().(*pod.Template); is {
			found(path+".HostNetwork", func() { template.HostNetwork = true })
			template.HostNetwork = false
		}
		if slices.Contains(within, v.Type()) {
			return
		}
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				places(v.Field(i), path+"."+field.Name, append(within, v.Type()), found)
			}
		}
	}
}

// A part of a pod is checked wherever Tekton's types can hold it.
func TestCheckReachesEveryPartOfAPod(t *testing.T) {
	run := &pipelinev1.PipelineRun{}
	seen := map[string]bool{}
	places(reflect.ValueOf(&run.Spec).Elem(), "spec", nil, func(path string, set func()) {
		seen[path] = true
		for _, level := range []string{Baseline, Restricted} {
			if err := Check(run, "x", free, Limits{PodSecurity: level, Setting: "the setting"}); err != nil {
				t.Errorf("%s of %s without a value: %v", path, level, err)
			}
		}
		set()
		for _, level := range []string{Baseline, Restricted} {
			if err := Check(run, "x", free, Limits{PodSecurity: level, Setting: "the setting"}); !fault.Is(err, fault.Invalid) {
				t.Errorf("%s of %s: %v, want Invalid", path, level, err)
			}
		}
		if err := Check(run, "x", free, Limits{ServiceAccounts: []string{"builder"}}); err != nil {
			t.Errorf("%s without a level: %v", path, err)
		}
	})
	const task = "spec.PipelineSpec.Tasks[].TaskSpec.TaskSpec."
	for _, path := range strings.Fields(`TaskRunTemplate.PodTemplate.HostNetwork TaskRunSpecs[].PodTemplate.SecurityContext
		Steps[].SecurityContext StepTemplate.SecurityContext Volumes[] Sidecars[].SecurityContext Sidecars[].Ports[]
		Sidecars[].LivenessProbe.ProbeHandler.HTTPGet Sidecars[].ReadinessProbe.ProbeHandler.TCPSocket
		Sidecars[].StartupProbe.ProbeHandler.HTTPGet Sidecars[].Lifecycle.PostStart.HTTPGet
		Sidecars[].Lifecycle.PreStop.TCPSocket`) {
		if !seen[task+path] && !seen["spec."+path] {
			t.Errorf("%s was not tried", path)
		}
	}
}
