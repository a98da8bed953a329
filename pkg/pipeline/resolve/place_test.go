// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/plumbline-ci/plumbline/pkg/fault"
)

// marked takes the mark § out of a text and returns where it was, as line:column.
func marked(text string) (without, place string) {
	before, after, _ := strings.Cut(text, "§")
	last := before[strings.LastIndex(before, "\n")+1:]
	return before + after, fmt.Sprintf("%d:%d", strings.Count(before, "\n")+1, utf8.RuneCountInString(last)+1)
}

// A value that its field does not accept is reported with the field and the place in the author's
// file. § marks that place.
func TestAWrongValueIsFoundInTheFile(t *testing.T) {
	const task = "spec: {pipelineSpec: {tasks: [{name: a, taskSpec: {%s}}]}}\n"
	const inTask = "spec.pipelineSpec.tasks[0].taskSpec."
	const step = "{name: s, image: i, %s}"
	for _, c := range []struct{ text, want string }{
		{`spec: {timeouts: {pipeline: §"1 hour"}}`, `spec.timeouts.pipeline: "1 hour" is no duration (write 1h0m)`},
		{`spec: {timeouts: {tasks: §"30 min"}}`, `spec.timeouts.tasks: "30 min" is no duration (write 30m)`},
		{`spec: {timeouts: {finally: §90}}`, `spec.timeouts.finally: 90 is no duration (write for example 1h30m)`},
		{`spec: {timeouts: {pipeline: §true}}`, `spec.timeouts.pipeline: true is no duration (write for example 1h30m)`},
		{
			`spec: {timeouts: {pipeline: §{hours: 1}}}`,
			`spec.timeouts.pipeline: {"hours":1} is no duration (write for example 1h30m)`,
		},
		{
			"spec:\n  timeouts:\n    pipeline: §1 month",
			`spec.timeouts.pipeline: "1 month" is no duration (write for example 1h30m)`,
		},
		{
			"spec:\n  timeouts:\n    pipeline: §|\n      1 hour\n",
			`spec.timeouts.pipeline: "1 hour\n" is no duration (write 1h0m)`,
		},
		{
			`spec: {pipelineSpec: {tasks: [{name: a, timeout: 1h}, {name: b, timeout: §1 day}]}}`,
			`spec.pipelineSpec.tasks[1].timeout: "1 day" is no duration (write 24h0m)`,
		},
		{fmt.Sprintf(task, `steps: [`+fmt.Sprintf(step, `timeout: §soon`)+`]`),
			inTask + `steps[0].timeout: "soon" is no duration (write for example 1h30m)`},
		{fmt.Sprintf(task, `steps: [`+fmt.Sprintf(step, `computeResources: {limits: {memory: §1 Gi}}`)+`]`),
			inTask + `steps[0].computeResources.limits.memory: "1 Gi" is no quantity (write 1Gi)`},
		{fmt.Sprintf(task, `stepTemplate: {computeResources: {requests: {cpu: §half}}}`),
			inTask + `stepTemplate.computeResources.requests.cpu: "half" is no quantity (write for example 500m, 2 or 1Gi)`},
		{fmt.Sprintf(task, `sidecars: [{name: s, image: i, computeResources: {limits: {cpu: §[1]}}}]`),
			inTask + `sidecars[0].computeResources.limits.cpu: [1] is no quantity`},
		{
			`spec: {workspaces: [{name: w, volumeClaimTemplate: {spec: {resources: {requests: {storage: §1GB}}}}}]}`,
			`spec.workspaces[0].volumeClaimTemplate.spec.resources.requests.storage: "1GB" is no quantity (write 1G)`,
		},
		{
			`spec: {taskRunSpecs: [{pipelineTaskName: a, computeResources: {limits: {memory: §many}}}]}`,
			`spec.taskRunSpecs[0].computeResources.limits.memory: "many" is no quantity`,
		},
		{fmt.Sprintf(task, `volumes: [{name: v, emptyDir: {sizeLimit: §1 Gi}}]`),
			inTask + `volumes[0].emptyDir.sizeLimit: "1 Gi" is no quantity (write 1Gi)`},
		{fmt.Sprintf(task, `sidecars: [{name: s, image: i, readinessProbe: {httpGet: {port: §[80]}}}]`),
			inTask + `sidecars[0].readinessProbe.httpGet.port must be a whole number or text, not a list`},
		{
			`spec: {params: [{name: a, value: b}, §{name: c}]}`,
			`spec.params[1].value is missing: give it a value, "" for the empty text`,
		},
		{
			`spec: {pipelineSpec: {tasks: [{name: a, params: [§{name: c}]}]}}`,
			`spec.pipelineSpec.tasks[0].params[0].value is missing`,
		},
		{
			`spec: {params: [{name: a, value: b}, §null]}`,
			`spec.params[1].value is missing: give it a value, "" for the empty text`,
		},
		{
			"spec:\n  pipelineSpec:\n    tasks:\n    - name: a\n      matrix:\n        include:\n        - name: i\n          params:\n          -§\n",
			`spec.pipelineSpec.tasks[0].matrix.include[0].params[0].value is missing`,
		},
		{
			`spec: {pipelineSpec: {tasks: [{name: a, matrix: {params: [§{name: c}]}}]}}`,
			`spec.pipelineSpec.tasks[0].matrix.params[0].value is missing`,
		},
		{`spec: {pipelineSpec: {results: [§{name: r}]}}`, `spec.pipelineSpec.results[0].value is missing`},
		{`spec: {params: §{name: a, value: b}}`, `spec.params must be a list, not a mapping`},
		{`spec: {params: [§a]}`, `spec.params[0] must be a mapping, not text`},
		{`spec: {params: [{name: §1, value: b}]}`, `spec.params[0].name must be text (put quotes around it), not a number`},
		{`spec: {params: [{name: §[a], value: b}]}`, `spec.params[0].name must be text (put quotes around it), not a list`},
		{
			`spec: {pipelineSpec: {tasks: [{name: a, retries: §"3"}]}}`,
			`spec.pipelineSpec.tasks[0].retries must be a whole number, not text`,
		},
		{
			`spec: {pipelineSpec: {tasks: [{name: a, retries: §1.5}]}}`,
			`spec.pipelineSpec.tasks[0].retries must be a whole number, not the number 1.5`,
		},
		{
			`spec: {pipelineSpec: {workspaces: [{name: a, optional: §"yes"}]}}`,
			`spec.pipelineSpec.workspaces[0].optional must be true or false, not text`,
		},
		{
			`spec: {pipelineSpec: {workspaces: [{name: a, optional: §1}]}}`,
			`spec.pipelineSpec.workspaces[0].optional must be true or false, not a number`,
		},
		{fmt.Sprintf(task, `steps: [`+fmt.Sprintf(step, `onError: §yes`)+`]`),
			inTask + `steps[0].onError must be text (put quotes around it), not true or false`},
		{fmt.Sprintf(task, `steps: [`+fmt.Sprintf(step, `args: [a, §[b]]`)+`]`),
			inTask + `steps[0].args[1] must be text (put quotes around it), not a list`},
		{fmt.Sprintf(task, `steps: [`+fmt.Sprintf(step, `env: [{name: A, value: §1}]`)+`]`),
			inTask + `steps[0].env[0].value must be text (put quotes around it), not a number`},
		{
			"metadata: {name: x, labels: {größe: {{ sender }}, b: §1}}",
			`metadata.labels.b must be text (put quotes around it), not a number`,
		},
		{
			"metadata: {name: x, labels: {a: 'b', example.com/c: §true}}",
			`metadata.labels[example.com/c] must be text (put quotes around it), not true or false`,
		},
		{"spec: §text", `spec must be a mapping, not text`},
		{
			"spec:\n\n  # größe: {{ sender }}\n  params: # {{ sender }}\n  - name: {{ sender }}\n    value: |\n      {{ sender }}\n      {{ unknown }}\n  timeouts: {pipeline: §1 hour}",
			`spec.timeouts.pipeline: "1 hour" is no duration`,
		},
		{
			"spec: {params: [{name: {{ sender }}, value: '{{ sender }} größe {{ sender }}'}], timeouts: {pipeline: §1 hour}}",
			`spec.timeouts.pipeline: "1 hour" is no duration`,
		},
		{"spec: {timeouts: {pipeline: §{{ sender }}}}", `spec.timeouts.pipeline: "first\nsecond\nthird" is no duration`},
		{
			"spec: {timeouts: {pipeline: §'{{ sender }} h'}}",
			`spec.timeouts.pipeline: "first\nsecond\nthird h" is no duration`,
		},
		{
			"spec: {pipelineSpec: {workspaces: [{name: a, optional: §{{ sender }}}]}}",
			`spec.pipelineSpec.workspaces[0].optional must be true or false, not text`,
		},
		{"x: §&long 1 hour\nspec: {timeouts: {pipeline: *long}}", `spec.timeouts.pipeline: "1 hour" is no duration`},
		{"x: &all {timeouts: {pipeline: §1 hour}}\nspec: {<<: *all}", `spec.timeouts.pipeline: "1 hour" is no duration`},
		{
			"x: &all {timeouts: {pipeline: 1h}}\nspec: {<<: *all, timeouts: {pipeline: §1 hour}}",
			`spec.timeouts.pipeline: "1 hour" is no duration`,
		},
		{"spec: {TIMEOUTS: {Pipeline: §1 hour}}", `spec.TIMEOUTS.Pipeline: "1 hour" is no duration`},
	} {
		for _, version := range []string{apiV1, apiV1beta1} {
			body := c.text
			want := c.want
			if version == apiV1beta1 && strings.Contains(want, "is missing") {
				continue // the conversion makes an empty text of it, as Tekton does
			}
			if version == apiV1beta1 && !strings.Contains(body, "taskRunSpecs") { // the field had another name
				body, want = strings.ReplaceAll(body, "computeResources", "resources"),
					strings.ReplaceAll(want, "computeResources", "resources")
			}
			head := "apiVersion: " + version + "\nkind: PipelineRun\n"
			if !strings.HasPrefix(body, "metadata") {
				head += "metadata: {name: x}\n"
			}
			for kind, text := range map[string]string{
				"alone": head + body + "\n",
				"the third document": "# {{ sender }}\n---\nkind: other\ntext: |\n  {{ sender }}\n--- # x\n\n# y\n" + head + body +
					"\n---\nkind: other\n",
				"with Windows line ends": "kind: other\r\n---\r\n" + strings.ReplaceAll(head+body+"\n", "\n", "\r\n"),
				"with a byte order mark": "\ufeff" + head + body + "\n",
			} {
				text, place := marked(text)
				if strings.HasPrefix(text, "\ufeff") && strings.HasPrefix(place, "1:") {
					t.Fatalf("%s: the place is behind the byte order mark", c.text)
				}
				set := load(text)
				_, err := set.Render(t.Context(), set.Definitions()[0],
					scopeOf(t, map[string]string{"sender": "first\nsecond\nthird"}), nil)
				want := ".tekton/a.yaml:" + place + ": " + want
				if !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), want) {
					t.Errorf("%s, %s, %s:\n%v\nwant %s", c.text, version, kind, err, want)
				}
			}
		}
	}
}

// A mistake in an inlined Task or Pipeline is reported at its own place. If it was fetched, the
// annotation comes first.
func TestAWrongValueOfWhatIsInlined(t *testing.T) {
	run := header + "metadata:\n  name: x\n  annotations: {%s}\nspec: %s\n---\n"
	for _, c := range []struct{ run, other, want string }{
		{
			fmt.Sprintf(run, "", "{pipelineRef: {name: p}}"),
			"apiVersion: tekton.dev/v1\nkind: Pipeline\nmetadata: {name: p}\nspec: {tasks: [{name: a, timeout: §1 hour}]}\n",
			`spec.tasks[0].timeout: "1 hour" is no duration`,
		},
		{
			fmt.Sprintf(run, "", "{pipelineSpec: {tasks: [{name: a, taskRef: {name: t}}]}}"),
			"apiVersion: tekton.dev/v1beta1\nkind: Task\nmetadata: {name: t}\nspec: {steps: [{name: s, image: i, timeout: §1 hour}]}\n",
			`spec.steps[0].timeout: "1 hour" is no duration`,
		},
	} {
		text, place := marked(c.run + c.other)
		set := load(text)
		_, err := set.Render(t.Context(), set.Definitions()[0], scopeOf(t, nil), nil)
		if want := ".tekton/a.yaml:" + place + ": " + c.want; !fault.Is(err, fault.Invalid) ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
		name := "task"
		if strings.Contains(c.other, "kind: Pipeline") {
			name = "pipeline"
		}
		set = load(strings.Replace(c.run, "annotations: {",
			"annotations: {pipelinesascode.tekton.dev/"+name+": 'https://example.com/x.yaml'", 1))
		remote, place := marked("# a comment\n---\n" + c.other)
		_, err = set.Render(t.Context(), set.Definitions()[0], scopeOf(t, nil), only(remote))
		want := ".tekton/a.yaml:1: annotation pipelinesascode.tekton.dev/" + name + ": https://example.com/x.yaml:" + place +
			": " + c.want
		if !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// Names and annotations are read first, and their mistakes have a place too.
func TestAWrongNameOrAnnotationIsFoundInTheFile(t *testing.T) {
	for text, want := range map[string]string{
		"metadata: {name: §1}":                                "metadata.name must be text: put quotes around it",
		"metadata: {generateName: §[a]}":                      "metadata.generateName must be text: put quotes around it",
		"metadata: {name: §" + strings.Repeat("a", 254) + "}": "metadata.name is longer than 253 bytes",
		"metadata: {name: x, annotations: §[a]}":              "metadata.annotations must be a mapping",
		"metadata: {name: x, annotations: {größe: {{ x }}, pipelinesascode.tekton.dev/on-event: §[push]}}": "the annotation pipelinesascode.tekton.dev/on-event must be text",
	} {
		text, place := marked("kind: other\n---\n# x\n" + header + text + "\n")
		definition := load(text).Definitions()[0]
		err := definition.Err
		if err == nil {
			err = definition.BadName
		}
		if want := ".tekton/a.yaml:" + place + ": " + want; !fault.Is(err, fault.Invalid) ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}
