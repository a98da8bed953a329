// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"strings"
	"testing"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"sigs.k8s.io/yaml"
)

// S36: whether a run was signed is not its author's to say, at no place that Tekton copies to
// TaskRuns.
func TestAuthorsDoNotWriteForChains(t *testing.T) {
	keys := func() map[string]string {
		return map[string]string{
			"chains.tekton.dev/signed": "true", "chains.tekton.dev/transparency-upload": "false", "acme.example/kept": "x",
		}
	}
	metadata := func() pipelinev1.PipelineTaskMetadata {
		return pipelinev1.PipelineTaskMetadata{Labels: keys(), Annotations: keys()}
	}
	task := func(name string) pipelinev1.PipelineTask {
		return pipelinev1.PipelineTask{Name: name, TaskSpec: &pipelinev1.EmbeddedTask{Metadata: metadata()}}
	}
	of := metadata()
	in := pushInput()
	in.Rendered = in.Rendered.DeepCopy()
	in.Rendered.Labels, in.Rendered.Annotations = keys(), keys()
	in.Rendered.Spec.TaskRunSpecs = []pipelinev1.PipelineTaskRunSpec{
		{PipelineTaskName: "a", Metadata: &of}, {PipelineTaskName: "b"},
	}
	in.Rendered.Spec.PipelineSpec = &pipelinev1.PipelineSpec{
		Tasks: []pipelinev1.PipelineTask{task("a"),
			{Name: "nested", PipelineSpec: &pipelinev1.PipelineSpec{Tasks: []pipelinev1.PipelineTask{task("c")}}},
			{Name: "named", TaskRef: &pipelinev1.TaskRef{Name: "x"}}},
		Finally: []pipelinev1.PipelineTask{task("d")},
	}
	data, err := yaml.Marshal(MakePipelineRun(in))
	if err != nil {
		t.Fatal(err)
	}
	if text := string(data); strings.Contains(text, "chains.tekton.dev") ||
		strings.Count(text, "acme.example/kept") != 10 {
		t.Errorf("%d keys of the author's own are left, want 10 and none of Chains':\n%s",
			strings.Count(text, "acme.example/kept"), text)
	}
	if got := in.Rendered.Annotations["chains.tekton.dev/signed"]; got != "true" {
		t.Error("the input was changed")
	}
}
