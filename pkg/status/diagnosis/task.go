// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"slices"
	"strconv"
	"strings"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// The reasons of conditions of TaskRuns that no constant of Tekton's API has.
const (
	podAdmissionFailed    = "PodAdmissionFailed"
	pullImageFailed       = "PullImageFailed"
	exceededNodeResources = "ExceededNodeResources"
	exceededQuota         = "ExceededResourceQuota"
	podPending            = "Pending"
)

// ofAttempt diagnoses one attempt of a failed TaskRun: first what ends a pod.
func (r *run) ofAttempt(tr *pipelinev1.TaskRun, s *pipelinev1.TaskRunStatus) Diagnosis {
	if d, ok := ofPod(r.facts.Pods[s.PodName]); ok && killed(s) {
		return d
	}
	c, task := s.GetCondition(apis.ConditionSucceeded), text.Code(TaskName(tr))
	switch pipelinev1.TaskRunReason(c.Reason) {
	case pipelinev1.TaskRunReasonPodEvicted:
		return ofEviction(task, s, c.Message)
	case pipelinev1.TaskRunReasonInitContainerOOM, pipelinev1.TaskRunReasonInitContainerFailed:
		if strings.HasPrefix(c.Message, `init container failed, "working-dir-initializer" `) {
			return unsure(causeInit, task) // its directory may be the author's
		}
		return ofCluster(causeInit, task)
	case pipelinev1.TaskRunReasonSidecarOOM, pipelinev1.TaskRunReasonSidecarFailed:
		return ofSidecars(task, s)
	case pipelinev1.TaskRunReasonStepOOM, pipelinev1.TaskRunReasonStepFailed, pipelinev1.TaskRunReasonFailed:
		return ofSteps(task, s, c.Message)
	case pipelinev1.TaskRunReasonCancelled:
		if r.timedOut() || tr.Spec.StatusMessage == pipelinev1.TaskRunCancelledByPipelineTimeoutMsg {
			return ofTimeout(task, s, c)
		}
		return unsure(causeCancelled, task)
	case pipelinev1.TaskRunReasonTimedOut:
		return ofTimeout(task, s, c)
	}
	return r.ofUnstarted(task, s, c.Reason, c.Message)
}

// ofEviction diagnoses a pod that was evicted.
func ofEviction(task string, s *pipelinev1.TaskRunStatus, message string) Diagnosis {
	if overLimit.MatchString(message) {
		return ofAuthor(causeStorage, task)
	}
	if d := ofSteps(task, s, ""); d.Verdict == v1alpha1.VerdictAuthor {
		return unsure(causeEvicted) // a step ended by itself before, or because of it
	}
	return ofCluster(causeEvicted)
}

// ofUnstarted diagnoses a TaskRun whose pod was not created or did not start.
func (r *run) ofUnstarted(task string, s *pipelinev1.TaskRunStatus, reason, message string) Diagnosis {
	pod := "the pod of task " + task
	switch pipelinev1.TaskRunReason(reason) {
	case pipelinev1.TaskRunReasonImagePullFailed:
		return ofImage(task, message)
	case pipelinev1.TaskRunReasonCreateContainerConfigError:
		if words := waitingMessage(s) + message; echoesOutage(words) || syncTimeout.MatchString(words) {
			return ofCluster(causeStart, pod)
		}
		return ofAuthor(causeConfig, task)
	case pipelinev1.TaskRunReasonPodCreationFailed:
		if exists, known := r.namedTask(message); known && !exists {
			return ofAuthor(causeNoTask, task)
		}
		if match := podErrored.FindStringSubmatch(message); match != nil {
			return ofStart(pod, match[1])
		}
		return ofCreation(pod, message)
	case podAdmissionFailed:
		return ofAuthor(causeRefused, "Pod Security", pod)
	}
	return ofDefinition(task, reason, message)
}

// ofDefinition diagnoses a TaskRun whose definition Tekton refused or could not fetch, or whose
// results or sidecars it could not handle.
func ofDefinition(task, reason, message string) Diagnosis {
	switch pipelinev1.TaskRunReason(reason) {
	case pipelinev1.TaskRunReasonFailedResolution:
		if fetchFailed(message) {
			return ofCluster(causeFetch)
		}
		return ofAuthor(causeNoTask, task)
	case pipelinev1.TaskRunReasonFailedValidation, pipelinev1.TaskRunReasonTaskFailedValidation,
		pipelinev1.TaskRunReasonResourceVerificationFailed, pipelinev1.TaskRunReasonInvalidParamValue:
		return ofAuthor(causeInvalidTask, task)
	case pipelinev1.TaskRunReasonResultLargerThanAllowedLimit:
		return ofAuthor(causeLargeResult, task)
	case pipelinev1.TaskRunReasonStopSidecarFailed:
		return ofCluster(causeStopSidecar, task)
	}
	return Diagnosis{Verdict: v1alpha1.VerdictUnknown}
}

// timedOut reports whether the PipelineRun ended because of its timeout.
func (r *run) timedOut() bool {
	return r.pr.Status.GetCondition(apis.ConditionSucceeded).Reason == pipelinev1.PipelineRunReasonTimedOut.String()
}

// namedTask looks up the Task that Tekton's guess names.
func (r *run) namedTask(message string) (exists, known bool) {
	_, _, task := splitHint(message)
	return r.facts.exists(task)
}

// ofSteps diagnoses from the steps. Before v1.12, Tekton gave all of these the reason Failed.
func ofSteps(task string, s *pipelinev1.TaskRunStatus, message string) Diagnosis {
	if step := FailedStep(s); step != nil {
		d := ofStep(task, step)
		d.Step = step.Name
		return d
	}
	switch {
	case nodeShutdown.MatchString(message):
		return ofCluster(causeShutdown)
	case nodeRefused.MatchString(message):
		return ofCluster(causeNodeRefused)
	case nodeEvicts.MatchString(message):
		return ofCluster(causeEvicted)
	case overLimit.MatchString(message):
		return ofAuthor(causeStorage, task)
	case pastDeadline.MatchString(message):
		return ofAuthor(causeTimeout, task)
	case nodeLost.MatchString(message), slices.ContainsFunc(s.Steps, func(step pipelinev1.StepState) bool {
		return step.Running != nil // the kubelet has not reported its end
	}):
		return ofCluster(causeNodeLost)
	}
	return Diagnosis{Verdict: v1alpha1.VerdictUnknown}
}

// ofStep diagnoses a step that failed.
func ofStep(task string, step *pipelinev1.StepState) Diagnosis {
	t, name := step.Terminated, text.Code(step.Name)
	switch {
	case t.Reason == "OOMKilled":
		return ofAuthor(causeMemory, "step", name, task)
	case step.TerminationReason == "TimeoutExceeded":
		return ofAuthor(causeStepTimeout, name, task)
	case t.Reason == "ContainerStatusUnknown":
		return ofCluster(causeNodeLost)
	case t.Reason == "StartError", t.Reason == "ContainerCannotRun":
		return unsure(causeStart, "step "+name+" of task "+task)
	}
	d := ofAuthor(causeExit, name, task, t.ExitCode)
	if slices.Contains(signals(), t.ExitCode) {
		d.Verdict = v1alpha1.VerdictUnknown
	}
	return d
}

// ofSidecars diagnoses a failed sidecar: the author's, or one that Tekton or the cluster added.
// Tekton names the sidecar even if a step has failed as well.
func ofSidecars(task string, s *pipelinev1.TaskRunStatus) Diagnosis {
	if d := ofSteps(task, s, ""); d.Verdict == v1alpha1.VerdictAuthor {
		return d
	}
	for _, sidecar := range s.Sidecars {
		t := sidecar.Terminated
		if t == nil || t.ExitCode == 0 && t.Reason != "OOMKilled" {
			continue
		}
		d := ofAuthor(causeSidecar, text.Code(sidecar.Name), task, t.ExitCode)
		if t.Reason == "OOMKilled" {
			d = ofAuthor(causeMemory, "sidecar", text.Code(sidecar.Name), task)
		}
		authors := s.TaskSpec == nil || slices.ContainsFunc(s.TaskSpec.Sidecars,
			func(declared pipelinev1.Sidecar) bool { return declared.Name == sidecar.Name })
		if !authors {
			d.Verdict = v1alpha1.VerdictInfrastructure
		} else if slices.Contains(signals(), t.ExitCode) && t.Reason != "OOMKilled" {
			d.Verdict = v1alpha1.VerdictUnknown
		}
		return d
	}
	return Diagnosis{Verdict: v1alpha1.VerdictUnknown}
}

// ofTimeout diagnoses a task that a timeout ended: its own, or that of the PipelineRun. The author
// is not responsible for a pod that no node took.
func ofTimeout(task string, s *pipelinev1.TaskRunStatus, c *apis.Condition) Diagnosis {
	previous := previousStatus.FindStringSubmatch(c.Message)
	if previous == nil {
		if s.PodName == "" || len(s.Steps) == 0 {
			return unsure(causeStart, "the pod of task "+task)
		}
		return ofAuthor(causeTimeout, task)
	}
	if d, ok := ofPending(task, previous[1], previous[2]); ok {
		return d
	}
	return unsure(causeTimeout, task)
}

// ofPending diagnoses a task whose pod did not start, from the condition of its TaskRun at that
// time. ok is false for other conditions.
func ofPending(task, reason, words string) (d Diagnosis, ok bool) {
	if match := pendingReason.FindStringSubmatch(words); match != nil {
		if unquoted, err := strconv.Unquote(match[1]); err == nil {
			words = unquoted
		}
	}
	switch reason {
	case exceededQuota:
		return ofCluster(causeQuota, "the pod of task "+task), true
	case exceededNodeResources:
		return ofCluster(causeUnschedulable, task), true
	case pullImageFailed:
		return ofPull(task, words), true
	case pipelinev1.TaskRunReasonResolvingTaskRef, pipelinev1.TaskRunReasonResolvingStepActionRef:
		return ofCluster(causeFetch), true
	case podPending:
		switch {
		case missingClaim.MatchString(words):
			return ofAuthor(causeConfig, task), true
		case nodesUnusable.MatchString(words) && !strings.Contains(words, "didn't match"):
			return ofCluster(causeUnschedulable, task), true
		}
		return unsure(causeStart, "the pod of task "+task), true
	}
	return Diagnosis{}, false
}

// ofImage diagnoses an image that the kubelet could not pull.
func ofImage(task, message string) Diagnosis {
	if match := podErrored.FindStringSubmatch(message); match != nil {
		return ofPull(task, match[1])
	}
	return unsure(causeImage, task)
}

// ofPull diagnoses from the kubelet's words, without what it quotes: the author chose the name of
// the image.
func ofPull(task, words string) Diagnosis {
	words = quotes.ReplaceAllString(words, "")
	refused, outage := pullRefused.MatchString(words), pullOutage.MatchString(words) || echoesOutage(words)
	switch {
	case strings.Contains(words, "no such host"), refused == outage:
		return unsure(causeImage, task)
	case refused:
		return ofAuthor(causeNoImage, task)
	}
	return ofCluster(causeRegistry)
}

// ofStart diagnoses a container that the kubelet could not start.
func ofStart(pod, words string) Diagnosis {
	words = quotes.ReplaceAllString(words, "")
	if echoesOutage(words) || strings.Contains(words, "failed to reserve container name") {
		return ofCluster(causeStart, pod)
	}
	return unsure(causeStart, pod)
}

// waitingMessage returns the words of the first step that waits.
func waitingMessage(s *pipelinev1.TaskRunStatus) string {
	for _, step := range s.Steps {
		if step.Waiting != nil && step.Waiting.Message != "" {
			return step.Waiting.Message
		}
	}
	return ""
}

// fetchFailed reports whether the source of a Pipeline, Task or StepAction could not be reached.
func fetchFailed(words string) bool {
	words = quotes.ReplaceAllString(words, "")
	return echoesOutage(words) || resolutionTimeout.MatchString(words) || pullOutage.MatchString(words)
}
