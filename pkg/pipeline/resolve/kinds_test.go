// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"context"
	"strings"
	"testing"

	"github.com/plumbline-ci/plumbline/pkg/fault"
	"github.com/plumbline-ci/plumbline/pkg/git"
)

// A document that was meant for Tekton and is not read is a mistake. Documents of other projects,
// and kinds of Tekton that Plumbline does not read, are not.
func TestUnknownKindsAndVersions(t *testing.T) {
	const build = "metadata: {name: build}\n"
	const annotated = "metadata: {name: build, annotations: {pipelinesascode.tekton.dev/on-event: push}}\n"
	for text, want := range map[string]string{
		"apiVersion: tekton.dev/v1alpha1\nkind: PipelineRun\n" +
			build: "1:13: apiVersion: Tekton has no PipelineRun of tekton.dev/v1alpha1: write apiVersion: tekton.dev/v1",
		"apiVersion: tekton.dev/v2\nkind: Task\n" +
			build: "1:13: apiVersion: Tekton has no Task of tekton.dev/v2: write apiVersion: tekton.dev/v1",
		"kind: Pipeline\napiVersion:   tekton.dev/V1\n" +
			build: "2:15: apiVersion: Tekton has no Pipeline of tekton.dev/V1: write",
		"apiVersion: tekton.dev/\nkind: Task\n" +
			build: "1:13: apiVersion: Tekton has no Task of tekton.dev/: write",
		"apiVersion: tekton.dev/v1\nkind: ClusterTask\n" +
			build: "1:13: apiVersion: Tekton has no ClusterTask of tekton.dev/v1: write apiVersion: tekton.dev/v1beta1",
		"apiVersion: tekton.dev/v1\nkind: PipeLineRun\n" +
			build: "2:7: kind: Tekton has no kind PipeLineRun: write kind: PipelineRun",
		"apiVersion: tekton.dev/v1\nkind: pipelinerun\n" +
			build: "2:7: kind: Tekton has no kind pipelinerun: write kind: PipelineRun",
		"apiVersion: tekton.dev/v1beta1\nkind: task\n" +
			build: "2:7: kind: Tekton has no kind task: write kind: Task",
		"apiVersion: tekton.dev/v1\nkind: Pipelines\n" +
			build: "2:7: kind: Tekton has no kind Pipelines: write kind: Pipeline",
		"apiVersion: tekton.dev/v1\nkind: 'Pipeline-Run'\n" +
			build: "2:7: kind: Tekton has no kind Pipeline-Run: write kind: PipelineRun",
		"apiVersion: tekton.dev/v2\nkind: Taks\n" +
			build: "2:7: kind: Tekton has no kind Taks. PipelineRun, Pipeline and Task are read",
		"apiVersion: tekton.dev/v2\nkind: pipelinerun\n" +
			build: "2:7: kind: Tekton has no kind pipelinerun: write apiVersion: tekton.dev/v1 and kind: PipelineRun",
		"apiVersion: tekton.dev/v1\nkind: Deployment\n" +
			build: "2:7: kind: Tekton has no kind Deployment. PipelineRun, Pipeline and Task are read",
		"apiVersion: tekton.dev/v1\nkind: 1\n" +
			build: "2:7: kind: Tekton has no kind 1.",
		"apiVersion: tekton.dev/v1\n" + build: "1: kind is missing: write kind: PipelineRun, Pipeline or Task",
		"apiVersion: tekton.dev/v1\nkind:\n" + build +
			"spec: {tasks: []}\n": "2:1: kind is missing: write kind: Pipeline",
		"apiVersion: tekton.dev/v1\n" +
			annotated: "1: kind is missing: write kind: PipelineRun",
		"kind: PipelineRun\n" + build:  "1: apiVersion is missing: write apiVersion: tekton.dev/v1",
		"kind: PipelineRuns\n" + build: "1: apiVersion is missing: write apiVersion: tekton.dev/v1 and kind: PipelineRun",
		annotated:                      "1: apiVersion and kind are missing: write apiVersion: tekton.dev/v1 and kind: PipelineRun",
		build + "spec: {steps: []}\n":  "1: apiVersion and kind are missing: write apiVersion: tekton.dev/v1 and kind: Task",
		"apiVersion: tekton.dev1/v1\nkind: PipelineRun\n" +
			build: "1:13: apiVersion: tekton.dev1/v1 has no PipelineRun: write apiVersion: tekton.dev/v1",
		"apiVersion: tektn.dev/v1\nkind: Task\n" +
			build: "1:13: apiVersion: tektn.dev/v1 has no Task: write",
		"apiVersion: Tekton.dev/v1\nkind: PipelineRun\n" +
			build: "1:13: apiVersion: Tekton.dev/v1 has no PipelineRun: write",
		"apiVersion: tekton.io/v1\nkind: pipeline\n" +
			build: "1:13: apiVersion: tekton.io/v1 has no Pipeline: write apiVersion: tekton.dev/v1 and kind: Pipeline",
		"apiVersion: pipelinesascode.tekton.dev/v1alpha1\nkind: PipelineRun\n" +
			build: "1:13: apiVersion: pipelinesascode.tekton.dev/v1alpha1 has no PipelineRun: write apiVersion: tekton.dev/v1",
		"apiVersion: v1\nkind: PipelineRun\n" +
			build: "1:13: apiVersion: v1 has no PipelineRun: write",
		"apiVersion: tekton.dev\nkind: Task\n" +
			build: "1:13: apiVersion: Tekton has no Task of tekton.dev: write apiVersion: tekton.dev/v1",
		"apiVersion: 1\nkind: Task\n" +
			build: "1:13: apiVersion: 1 has no Task: write",
		"apiVersion: {{ version }}\nkind: Task\n" +
			build: "1:13: apiVersion: {{ version }} has no Task: write",
		"apiVersion: v1\nkind: List\nitems: [{apiVersion: tekton.dev/v1, kind: Task}]\n":          "2:7: a List is not read",
		"apiVersion: tekton.dev/v1\nkind: TaskList\nitems: [{apiVersion: tekton.dev/v1}]\n":       "2:7: a TaskList is not read",
		"apiVersion: tekton.dev/v1\nkind: PipelineRun\n" + build:                                  "",
		"apiVersion: tekton.dev/v1beta1\nkind: Task\n" + build:                                    "",
		"apiVersion: tekton.dev/v1\nkind: TaskRun\n" + build:                                      "",
		"apiVersion: tekton.dev/v1alpha1\nkind: StepAction\n" + build:                             "",
		"apiVersion: tekton.dev/v1beta1\nkind: CustomRun\n" + build:                               "",
		"apiVersion: tekton.dev/v1beta1\nkind: ClusterTask\n" + build:                             "",
		"apiVersion: tekton.dev/v1alpha1\nkind: PipelineResource\n" + build:                       "",
		"apiVersion: tekton.dev/v1alpha1\nkind: EventListener\n" + build:                          "",
		"apiVersion: v1\nkind: ConfigMap\n" + annotated:                                           "",
		"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Secret}]\n":                   "",
		"apiVersion: triggers.tekton.dev/v1beta1\nkind: EventListener\n" + build:                  "",
		"apiVersion: triggers.tekton.dev/v1beta1\nkind: Trigger\n" + build:                        "",
		"apiVersion: chains.tekton.dev/v1\nkind: Anything\n" + build:                              "",
		"apiVersion: operator.tekton.dev/v1alpha1\nkind: TektonPipeline\n" + build:                "",
		"apiVersion: pipelinesascode.tekton.dev/v1alpha1\nkind: Repository\n" + build:             "",
		"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\n": "",
		"resources: [a.yaml]\n":                                                                "",
		"spec: {replicas: 1}\nmetadata: {name: x}\n":                                           "",
		"kind: Secret\n" + build:                                                               "",
		"apiVersion: apps/v1\nkind: Deployment\n" + build:                                      "",
		"apiVersion: example.com/v1\nkind: Pipeline\n" + build:                                 "",
		"apiVersion: pipelines.kubeflow.org/v1\nkind: Task\n" + build:                          "",
		"apiVersion: tekton.dev/v1beta1\nkind: PipelineList\nitems: [{spec: {tasks: []}}]\n":   "2:7: a PipelineList is not read",
		"apiVersion: tekton.dev/v1\nkind: PipelineRunList\nitems: []\n":                        "",
		"apiVersion: tekton.dev/v1\nkind: TaskRunList\nitems: [{apiVersion: tekton.dev/v1}]\n": "",
		"apiVersion: v1\nkind: List\nitems: [{apiVersion: tekton.dev/v1, kind: TaskRun}]\n":    "",
		"apiVersion: tekton.dev/v1\nkind: SecretList\n" +
			build: "2:7: kind: Tekton has no kind SecretList.",
		"kind: PipelineRun\nspec: {}\n":                                "1: apiVersion is missing: write",
		"spec: {pipelineSpec: {}}\n":                                   "1: apiVersion and kind are missing: write",
		"kind: pipeline\ntype: docker\nsteps: [{name: a, image: b}]\n": "",
		"kind: task\nimage: b\n":                                       "",
		"spec: {steps: 3}\n":                                           "",
		"spec: {tasks: [a, b]}\n":                                      "",
		"- apiVersion: tekton.dev/v3\n":                                "",
	} {
		set := load("# first\n---\n"+text, header+"metadata: {name: other}\n")
		definitions := set.Definitions()
		other := definitions[len(definitions)-1]
		if other.Name != "other" || other.Err != nil || other.BadName != nil {
			t.Errorf("%q: the other file's pipeline is %+v", text, other)
		}
		first := definitions[0]
		switch {
		case want == "" && first.Err != nil:
			t.Errorf("%q: %v, want no mistake", text, first.Err)
		case want == "":
		case !fault.Is(first.Err, fault.Invalid) || fault.Of(first.Err).Reason != "UnknownKind":
			t.Errorf("%q: %v, want %s", text, first.Err, want)
		default:
			line, rest, _ := strings.Cut(want, ":")
			want = ".tekton/a.yaml:" + string(line[0]+2) + ":" + rest
			if !strings.HasPrefix(first.Err.Error(), want) {
				t.Errorf("%q:\n%v, want\n%s", text, first.Err, want)
			}
		}
	}
}

// The mistake of a fetched document names the annotation that refers to it.
func TestUnknownKindOfAReference(t *testing.T) {
	set := load(header +
		"metadata:\n  name: x\n  annotations: {pipelinesascode.tekton.dev/task: 'https://example.com/t.yaml'}\n" +
		"spec: {pipelineSpec: {tasks: [{name: a, taskRef: {name: t}}]}}\n")
	for text, want := range map[string]string{
		"apiVersion: tekton.dev/v1alpha1\nkind: Task\nmetadata: {name: t}\n": "https://example.com/t.yaml:1:13: apiVersion: Tekton has no Task of tekton.dev/v1alpha1",
		"apiVersion: tekton.dev/v1\nkind: task\nmetadata: {name: t}\n":       "https://example.com/t.yaml:2:7: kind: Tekton has no kind task: write kind: Task",
		"kind: Task\nmetadata: {name: t}\n":                                  "https://example.com/t.yaml:1: apiVersion is missing",
		"apiVersion: v1\nkind: Secret\n":                                     "https://example.com/t.yaml holds no Task of tekton.dev/v1 or tekton.dev/v1beta1",
	} {
		_, err := set.Render(t.Context(), set.Definitions()[0], scopeOf(t, nil), only(text))
		want = ".tekton/a.yaml:1: annotation pipelinesascode.tekton.dev/task: " + want
		if !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q:\n%v, want\n%s", text, err, want)
		}
	}
}

// A file that has what its reference names is used, whatever else is in it.
func TestUnknownKindsBesideAReference(t *testing.T) {
	set := load(header +
		"metadata:\n  name: x\n  annotations: {pipelinesascode.tekton.dev/task: 'https://example.com/t.yaml'}\n" +
		"spec: {pipelineSpec: {tasks: [{name: a, taskRef: {name: t}}]}}\n")
	const old = "apiVersion: tekton.dev/v1alpha1\nkind: Task\nmetadata: {name: old}\n"
	const task = "apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: t}\nspec: {steps: [{name: s, image: i}]}\n"
	for _, text := range []string{old + "---\n" + task, task + "---\n" + old} {
		run, err := set.Render(t.Context(), set.Definitions()[0], scopeOf(t, nil), only(text))
		if err != nil || run.Spec.PipelineSpec.Tasks[0].TaskSpec == nil {
			t.Errorf("%q: %v, %v", text, run, err)
		}
	}
}

// only is a text that every reference stands for.
type only string

func (o only) Read(_ context.Context, _ Kind, reference string) (git.File, error) {
	return git.File{Path: reference, Data: []byte(o)}, nil
}
