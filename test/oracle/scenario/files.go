// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const prefix = "pipelinesascode.tekton.dev/"

// variables are the placeholders that every pipeline shows, by the name of the environment variable
// that shows them.
func variables() map[string]string {
	return map[string]string{
		"REVISION": "{{ revision }}", "REPO_URL": "{{ repo_url }}", "OWNER": "{{repo_owner}}", "NAME": "{{ repo_name }}",
		"TARGET": "{{ target_branch }}", "SOURCE": "{{ source_branch }}", "SOURCE_URL": "{{ source_url }}",
		"SENDER":     "{{ sender }}",
		"EVENT_TYPE": "{{ event_type }}", "PULL": "{{ pull_request_number }}", "TAG": "{{ git_tag }}",
		"NAMESPACE": "{{ target_namespace }}",
		"COMMENT":   "{{ trigger_comment }}", "LABELS": "{{ pull_request_labels }}",
		"BODY": "{{ body.repository.full_name }}", "HEADER": "{{ headers['X-Github-Event'] }}",
		"UNKNOWN": "{{ no_such_variable }}",
	}
}

// Files are those of main, or of the head of a scenario that edits .tekton there.
func (s Scenario) Files(head bool) map[string]string {
	files := map[string]string{"docs/readme.md": "Read me.\n", "src/main.go": "package main\n"}
	maps.Copy(files, s.Definitions(head))
	return files
}

// Definitions are the files of .tekton.
func (s Scenario) Definitions(head bool) map[string]string {
	files := map[string]string{}
	for _, p := range s.Pipelines {
		where := Main
		if head && s.HeadEdits {
			where = "head"
		}
		files[".tekton/"+p.Name+".yaml"] = p.yaml(where)
	}
	return files
}

// yaml is a PipelineRun with one task. where is in its spec, so that a run shows which definition
// it has.
func (p Pipeline) yaml(where string) string {
	var b strings.Builder
	b.WriteString("apiVersion: tekton.dev/v1\nkind: PipelineRun\nmetadata:\n")
	if p.Generated {
		fmt.Fprintf(&b, "  generateName: %s-\n", p.Name)
	} else {
		fmt.Fprintf(&b, "  name: %s\n", p.Name)
	}
	b.WriteString(p.annotations())
	b.WriteString("spec:\n  pipelineSpec:\n    tasks:\n      - name: show\n        taskSpec:\n          steps:\n            - name: show\n" +
		"              image: registry.example.com/busybox\n              script: env\n              env:\n")
	shown := variables()
	shown["WHERE"] = where
	for _, name := range sorted(shown) {
		fmt.Fprintf(&b, "                - {name: %s, value: %q}\n", name, shown[name])
	}
	if p.Clones {
		b.WriteString("    workspaces: [{name: auth}]\n  workspaces:\n    - name: auth\n      secret: {secretName: \"{{ git_auth_secret }}\"}\n")
	}
	return b.String()
}

// annotations has, beside those of Pipelines-as-Code, those that tell the cluster's fake nodes how
// the run ends.
func (p Pipeline) annotations() string {
	all := map[string]string{}
	for name, value := range p.On {
		all[prefix+name] = value
	}
	if p.Keeps != "" {
		all[prefix+"max-keep-runs"] = p.Keeps
	}
	if p.Cancels != "" {
		all[prefix+"cancel-in-progress"] = p.Cancels
	}
	if p.Fails {
		all["test.plumbline.dev/exit-code"] = "1"
	}
	if p.Held {
		all["test.plumbline.dev/hold"] = "true"
	}
	if len(all) == 0 {
		return ""
	}
	text := "  annotations:\n"
	for _, name := range sorted(all) {
		text += fmt.Sprintf("    %s: %q\n", name, all[name])
	}
	return text
}

func sorted[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
