// SPDX-License-Identifier: Apache-2.0

package podsecurity

import (
	"strings"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// inCustomTask is a PipelineRun with a custom task that has this text as its spec.
func inCustomTask(spec string) *pipelinev1.PipelineRun {
	task := &pipelinev1.EmbeddedTask{Spec: runtime.RawExtension{Raw: []byte(spec)}}
	task.APIVersion, task.Kind = "example.dev/v1", "Loop"
	run := &pipelinev1.PipelineRun{}
	run.Spec.PipelineSpec = &pipelinev1.PipelineSpec{Tasks: []pipelinev1.PipelineTask{{Name: "x", TaskSpec: task}}}
	return run
}

// Each part of a pod is read as a whole. If parts could be in parts without a limit, a custom task
// of 1 MiB, in 200 levels as YAML allows, would take seven seconds of a processor.
func TestPartsOfPodsAreNotNestedDeeply(t *testing.T) {
	t.Parallel()
	const levels = 190
	text := `{"annotations":{"a":"` + strings.Repeat("x", 1<<10) + `"}}`
	for _, key := range []string{"metadata", "podTemplate", "stepTemplate", "volumes", "steps", "sidecars", "containers",
		"initContainers"} {
		spec := text
		for range levels {
			if strings.HasSuffix(key, "s") {
				spec = "[" + spec + "]"
			}
			spec = `{"` + key + `":` + spec + `}`
		}
		err := Check(inCustomTask(spec), "x", free, Limits{PodSecurity: Baseline, Setting: "the setting"})
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "nested") {
			t.Errorf("%s in %d levels: %v", key, levels, err)
		}
	}
}

// A custom task may embed the spec of a pod, whatever the field is called.
func TestPodOfACustomTaskIsChecked(t *testing.T) {
	t.Parallel()
	for spec, refused := range map[string]bool{
		`{"template":{"spec":{"hostNetwork":true}}}`:                                                           true,
		`{"template":{"spec":{"hostPID":true}}}`:                                                               true,
		`{"template":{"spec":{"hostIPC":true}}}`:                                                               true,
		`{"template":{"spec":{"hostNetwork":false,"securityContext":{"runAsUser":1000}}}}`:                     false,
		`{"template":{"spec":{"securityContext":{"seccompProfile":{"type":"Unconfined"}}}}}`:                   true,
		`{"template":{"spec":{"securityContext":{"sysctls":[{"name":"kernel.msgmax","value":"1"}]}}}}`:         true,
		`{"job":{"securityContext":{"privileged":true}}}`:                                                      true,
		`{"job":{"securityContext":{"capabilities":{"add":["SYS_ADMIN"]}}}}`:                                   true,
		`{"job":{"securityContext":{"capabilities":{"drop":["ALL"]},"fsGroup":1,"procMount":"Default"}}}`:      false,
		`{"template":{"spec":{"volumes":[{"name":"d","ephemeral":{"volumeClaimTemplate":{"metadata":{}}}}]}}}`: false,
	} {
		err := Check(inCustomTask(spec), "x", free, Limits{PodSecurity: Baseline, Setting: "the setting"})
		if fault.Is(err, fault.Invalid) != refused {
			t.Errorf("%s: %v, want it refused: %t", spec, err, refused)
		}
	}
}
