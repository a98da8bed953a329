// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// A caret is at the place of the mistake in the author's file, whatever the values of placeholders
// are. § marks that place. foo does not exist, and {{ note }} has three lines.
func TestPlanPointsIntoTheAuthorsFile(t *testing.T) {
	const expression = "apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata:\n  name: a\n  annotations:\n    pipelinesascode.tekton.dev/on-cel-expression: %s\n" +
		"spec: {pipelineSpec: {tasks: [{name: t, taskSpec: {steps: [{name: s, image: busybox}]}}]}}\n"
	const anyEvent = "apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata: {name: a, annotations: {pipelinesascode.tekton.dev/on-cel-expression: 'true'}}\n"
	files, wanted, names := map[string]string{}, map[string]string{}, map[string]string{}
	for name, text := range map[string]string{
		"no placeholder": fmt.Sprintf(expression, `'event == "x" || §foo == 1'`),
		"placeholders on the same line": fmt.Sprintf(expression,
			`'target_branch == "{{ target_branch }}" || """{{ note }}{{ note }}""" == "" || §foo == 1'`),
		"one that is longer than its value": fmt.Sprintf(expression,
			`'"{{       target_branch        }}" == "x" || §foo == 1'`),
		"one that has no value":                fmt.Sprintf(expression, `'"{{ git_tag }}" == "x" || §foo == 1'`),
		"one that is unknown":                  fmt.Sprintf(expression, `'"{{ unknown }}" == "x" || §foo == 1'`),
		"the mistake in a placeholder's value": fmt.Sprintf(expression, `'event == "x" || §{{ function }} == 1'`),
		"letters of several bytes": fmt.Sprintf(expression,
			`'"größe {{ target_branch }} größe" == "x" || §foo == 1'`),
		"an expression of several lines": fmt.Sprintf(expression,
			"|\n      event == '{{ target_branch }}' ||\n        \"\"\"{{ note }}\"\"\" == '{{ sender }}' || §foo == 1"),
		"a folded one": fmt.Sprintf(expression,
			">-\n      event == '{{ target_branch }}' ||\n\n      '{{ sender }}' == '' || §foo == 1"),
		"one in double quotes": fmt.Sprintf(expression,
			`"'{{ target_branch }}' == \"\" || §foo == 1"`),
		"one without quotes": fmt.Sprintf(expression,
			`event == '{{ target_branch }}' || §foo == 1`),
		"a tab": fmt.Sprintf(expression,
			"event\t==\t'{{ target_branch }}'\t||\t§foo == 1"),
		"an alias": "x: &when event == '{{ target_branch }}' || §foo == 1\n" +
			fmt.Sprintf(expression, "*when"),
		"a merged mapping": "x: &all {pipelinesascode.tekton.dev/on-cel-expression: 'event == \"{{ target_branch }}\" || §foo == 1'}\n" + strings.Replace(fmt.Sprintf(expression, ""), "    pipelinesascode.tekton.dev/on-cel-expression: ", "    <<: *all", 1),
		"an alias of a block": "x: &when |\n  event == '{{ target_branch }}' ||\n  §foo == 1\n" +
			fmt.Sprintf(expression, "*when"),
		"an expression in a placeholder": anyEvent +
			"spec: {params: [{name: '{{ note }}', value: '{{ note }} {{ cel: §foo + 1 }}'}]}\n",
		"without blanks": anyEvent +
			"spec: {params: [{name: '{{ note }}', value: '{{ note }} {{cel:§foo + 1}}'}]}\n",
		"below the same text in another document": "# {{ cel: foo + 1 }}\nkind: other\nx: '{{ cel: foo + 1 }}'\n---\n" +
			anyEvent + "spec: {params: [{name: x, value: '{{ cel: §foo + 1 }}'}]}\n",
		"in a block": anyEvent +
			"spec:\n  params:\n    - name: x\n      value: |\n        {{ note }}\n        größe {{ cel: §foo + 1 }}\n",
		"a long one": anyEvent + "spec: {params: [{name: x, value: '{{ cel: §foo + " +
			strings.Repeat("1 + ", 60) + "1 }}'}]}\n",
		"a value behind placeholders": anyEvent +
			"spec: {params: [{name: x, value: '{{ note }}'}, {name: '{{ note }}', value: größe}], timeouts: {pipeline: §1 hour}}\n",
		"a value below a block of placeholders": anyEvent +
			"spec:\n  params: [{name: x, value: y}]\n  description: |\n    {{ note }}\n    {{ note }}\n  timeouts: {pipeline: §1 hour}\n",
		"an unknown anchor behind placeholders": anyEvent +
			"spec: {params: [{name: x, value: '{{ note }} größe'}], timeouts: §*none}\n",
		"an unclosed mapping": anyEvent +
			"spec:\n  params: [{name: x, value: '{{ note }}'}]\n  timeouts: §{pipeline: '{{ note }}'\n  taskRunTemplate:\n    serviceAccountName: x\n",
		"an unclosed list before other documents": anyEvent +
			"spec:\n  params: §[{name: x, value: '{{ note }}'}\n---\nkind: other\n",
		"a kind behind a placeholder": "{x: '{{ note }} größe', apiVersion: tekton.dev/v1, kind: §Pipelinerun}\n",
		"a value in an inlined Task": anyEvent +
			"spec: {pipelineSpec: {tasks: [{name: t, taskRef: {name: TASK}}]}}\n---\napiVersion: tekton.dev/v1beta1\nkind: Task\nmetadata: {name: TASK}\nspec: {steps: [{name: s, image: '{{ note }}', timeout: §1 hour}]}\n",
		"a value that YAML reads as something it is not": anyEvent + "spec: {params: [{name: §yes, value: '{{ note }}'}]}\n",
	} {
		for way, whole := range map[string]string{
			"alone":                   text,
			"behind another document": "# größe {{ note }}\nkind: other\nnote: |\n  {{ note }}\n--- # {{ note }}\n" + text,
			"with Windows line ends":  strings.ReplaceAll("kind: other\n---\n"+text, "\n", "\r\n"),
		} {
			file := fmt.Sprintf(".tekton/%03d.yaml", len(files))
			whole = strings.NewReplacer("name: a\n", "name: "+file+"\n", "{name: a, a", "{name: "+file+", a", "TASK",
				file).Replace(whole)
			before, after, _ := strings.Cut(whole, "§")
			last := before[strings.LastIndex(before, "\n")+1:]
			files[file] = before + after
			wanted[file] = fmt.Sprintf("%s:%d:%d: error: ", file, strings.Count(before, "\n")+1, utf8.RuneCountInString(last)+1)
			names[file] = name + ", " + way
		}
	}
	repo := topic(t, files)
	got := plumb(t.Context(), repo.Dir, "", "plan", "--sender", "ada", "--param", "note=one\ntwo\nthree", "--param",
		"function=foo")
	for file, want := range wanted {
		_, said, _ := strings.Cut("\n"+got.said, "\n"+file)
		if shown := file + said; !strings.HasPrefix(shown, want) || got.code != exitAuthor {
			lines := strings.SplitN(shown, "\n", 4)
			t.Errorf("%s: exit %d, want %s of\n%s\n%s", names[file], got.code, want, files[file],
				strings.Join(lines[:min(3, len(lines))], "\n"))
		}
	}
}
