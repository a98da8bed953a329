// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"slices"

	pipelinev1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"knative.dev/pkg/apis"

	"github.com/plumbline-ci/plumbline/pkg/status/text"
)

// ofRun diagnoses a PipelineRun from its own condition. ok is false if its tasks say more.
func (r *run) ofRun(c *apis.Condition, tasksFailed bool) (d Diagnosis, ok bool) {
	switch reason := pipelinev1.PipelineRunReason(c.Reason); reason {
	case pipelinev1.PipelineRunReasonFailed, "":
		return Diagnosis{}, false
	case pipelinev1.PipelineRunReasonTimedOut, pipelinev1.PipelineRunReasonTimedOutRunningFinally:
		if tasksFailed {
			return Diagnosis{}, false
		}
		return r.ofRunTimeout(), true
	case pipelinev1.PipelineRunReasonCreateRunFailed:
		return ofCreation("the TaskRun", c.Message), true
	case pipelinev1.PipelineRunReasonCouldntGetPipeline, pipelinev1.PipelineRunReasonCouldntGetTask,
		pipelinev1.PipelineRunReasonFailedValidation:
		return ofResolution(c), true
	case pipelinev1.PipelineRunReasonInvalidTaskResultReference,
		pipelinev1.PipelineRunReasonInvalidPipelineResultReference, pipelinev1.PipelineRunReasonCouldntGetPipelineResult:
		return ofAuthor(causeResult), true
	case "CouldntCreateWorkspacePVC", "ReasonCouldntCreateOrUpdateAffinityAssistantStatefulSet":
		if echoesOutage(c.Message) || QuotaName(c.Message) != "" {
			return ofCluster(causeVolume), true
		}
		return unsure(causeVolume), true
	default:
		if slices.Contains(invalidRuns(), reason) {
			return ofAuthor(causeInvalidRun, c.Reason), true
		}
	}
	return Diagnosis{}, false
}

// ofResolution diagnoses definitions that Tekton did not get, or that are invalid.
func ofResolution(c *apis.Condition) Diagnosis {
	switch {
	case fetchFailed(c.Message):
		return ofCluster(causeFetch)
	case c.Reason == pipelinev1.PipelineRunReasonFailedValidation.String():
		return ofAuthor(causeInvalidRun, c.Reason)
	}
	return ofAuthor(causeNoDefinition)
}

// ofRunTimeout diagnoses a timeout when no TaskRun has ended because of it yet: Tekton ends the
// PipelineRun first.
func (r *run) ofRunTimeout() Diagnosis {
	for _, tr := range r.taskRuns {
		c := tr.Status.GetCondition(apis.ConditionSucceeded)
		if !c.IsUnknown() {
			continue
		}
		if d, ok := ofPending(text.Code(TaskName(tr)), c.GetReason(), c.GetMessage()); ok {
			return d
		}
	}
	return ofAuthor(causeRunTimeout)
}

// invalidRuns are the reasons with which Tekton refuses a definition.
func invalidRuns() []pipelinev1.PipelineRunReason {
	return []pipelinev1.PipelineRunReason{
		pipelinev1.PipelineRunReasonInvalidBindings,
		pipelinev1.PipelineRunReasonInvalidWorkspaceBinding,
		pipelinev1.PipelineRunReasonInvalidTaskRunSpec,
		pipelinev1.PipelineRunReasonParameterTypeMismatch,
		pipelinev1.PipelineRunReasonObjectParameterMissKeys,
		pipelinev1.PipelineRunReasonParamArrayIndexingInvalid,
		pipelinev1.PipelineRunReasonParameterMissing,
		pipelinev1.PipelineRunReasonInvalidGraph,
		pipelinev1.PipelineRunReasonInvalidMatrixParameterTypes,
		pipelinev1.PipelineRunReasonRequiredWorkspaceMarkedOptional,
		pipelinev1.PipelineRunReasonResourceVerificationFailed,
		pipelinev1.PipelineRunReasonCELEvaluationFailed,
		pipelinev1.PipelineRunReasonInvalidParamValue,
	}
}

// ofCreation diagnoses that an object of a run could not be created, from the words of the API
// server: Tekton keeps neither its code nor its reason.
func ofCreation(what, message string) Diagnosis {
	words, _, _ := splitHint(message)
	if c, ok := webhookCall(words); ok {
		return ofCluster(causeWebhook, c.kind, c.name)
	}
	if name, why, ok := webhookDenial(words); ok {
		switch {
		case echoesOutage(why):
			return ofCluster(causeWebhook, "admission webhook", `"`+name+`"`)
		case isTekton(name):
			return ofAuthor(causeRefused, "Tekton", what)
		}
		return ofCluster(causeRefused, `the admission webhook "`+name+`"`, what)
	}
	if match := terminating.FindStringSubmatch(words); match != nil {
		return unsure(causeTerminating, match[1])
	}
	if match := podCreation.FindStringSubmatch(words); match != nil {
		words = match[1]
	}
	switch {
	case QuotaName(words) != "":
		return ofCluster(causeQuota, what)
	case byLimitRange.MatchString(words), byPodSecurity.MatchString(words), byValidation.MatchString(words),
		translation.MatchString(words):
		return ofAuthor(causeRefused, "the cluster", what)
	case echoesOutage(words):
		return ofCluster(causeNotCreated, what)
	}
	return unsure(causeNotCreated, what)
}
