// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"slices"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
)

// Explain returns in plain text what a terminal condition of Tekton means when Tekton's own words
// mislead, and "" when it has nothing to add. It never changes a conclusion.
//
// Tekton ends a TaskRun with PodCreationFailed and the guess "Maybe missing or invalid Task X"
// whenever a pod cannot be created for a reason it does not know, such as an admission webhook that
// refuses connections. The guess is repeated only if facts say that X does not exist.
func Explain(reason, message string, facts Facts) string {
	if !FromControlPlane(reason) {
		return ""
	}
	what := "what this run needs"
	switch reason {
	case pipelinev1.TaskRunReasonPodCreationFailed.String():
		what = "the task's pod"
	case pipelinev1.PipelineRunReasonCreateRunFailed.String():
		what = "the task's TaskRun"
	}
	words, hint, task := splitHint(message)
	var said []string
	if text := cause(what, words); text != "" {
		said = append(said, text)
	}
	if exists, known := facts.exists(task); known && !exists {
		said = append(said, "The Task "+task+" does not exist ("+hint+").")
	}
	return strings.Join(said, " ")
}

// FromControlPlane reports whether Tekton's controller or the API server wrote the condition's
// message, and not a step.
func FromControlPlane(reason string) bool {
	return slices.Contains([]string{
		pipelinev1.TaskRunReasonPodCreationFailed.String(),
		pipelinev1.PipelineRunReasonCreateRunFailed.String(),
		pipelinev1.PipelineRunReasonCouldntGetTask.String(),
		pipelinev1.PipelineRunReasonCouldntGetPipeline.String(),
		pipelinev1.PipelineRunReasonFailedValidation.String(),
		pipelinev1.TaskRunReasonFailedResolution.String(),
		pipelinev1.TaskRunReasonFailedValidation.String(),
	}, reason)
}

func cause(what, words string) string {
	if call, ok := webhookCall(words); ok {
		text := "The cluster could not create " + what + ": its " + call.kind + " " + call.name
		if call.address != "" {
			text += " at " + call.address
		}
		return text + " failed with: " + sentence(call.err) +
			" The cluster failed, not the change; run it again once the webhook answers."
	}
	if name, why, ok := webhookDenial(words); ok {
		return denied(what, name, why)
	}
	if match := terminating.FindStringSubmatch(words); match != nil {
		return "The cluster could not create " + what + ": namespace " + match[1] + " is being deleted, and this run with it. That is not about the change."
	}
	if match := podCreation.FindStringSubmatch(words); match != nil && echoesOutage(match[1]) {
		return "The cluster could not create " + what + ": " + sentence(match[1]) +
			" The cluster failed, not the change; run it again."
	}
	return ""
}

func denied(what, name, why string) string {
	text := `The admission webhook "` + name + `" refused ` + what + ": " + sentence(why)
	switch {
	case echoesOutage(why):
		return text + " The webhook itself seems to have failed; run it again when the cluster is healthy."
	case isTekton(name):
		return text
	}
	return text + " This is a rule of the cluster; ask the cluster's administrators what it requires."
}

func sentence(words string) string { return strings.TrimRight(words, ". ") + "." }

// exists looks up a Task by "namespace/name" and by its name.
func (f Facts) exists(task string) (exists, known bool) {
	if task == "" {
		return false, false
	}
	if exists, known = f.TaskExists[task]; known {
		return exists, true
	}
	_, name, _ := strings.Cut(task, "/")
	exists, known = f.TaskExists[name]
	return exists, known
}

// WithoutHint returns Tekton's message without its guess, unless the guess is right.
func WithoutHint(message string, facts Facts) string {
	words, _, task := splitHint(message)
	if exists, known := facts.exists(task); known && !exists {
		return message
	}
	return words
}
