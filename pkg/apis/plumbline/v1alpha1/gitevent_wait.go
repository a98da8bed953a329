// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The steps that can wait.
const (
	StepPlan   = "plan"
	StepCreate = "create/" // followed by the PipelineRun's name
	StepReport = "report"
	StepCancel = "cancel/" // followed by the PipelineRun's name
	// StepNotify records a cancellation on the events that it cancels.
	StepNotify = "notify"
	// StepSupersede checks, before runs are created, whether a newer event supersedes them.
	StepSupersede = "supersede"
	// StepReply writes the comment that answers the commands of a pull request.
	StepReply = "reply"
	// StepValidation writes the comment that lists the errors in the files of .tekton.
	StepValidation = "validation"
	// StepFailures writes the comment that lists the failed pipelines.
	StepFailures = "failures"
	StepRenew    = "renew"
	StepAnnotate = "annotate"
	// StepSources sends annotations on source lines.
	StepSources = "source-lines"
	// StepPrune deletes finished runs beyond max-keep-runs.
	StepPrune = "prune"
	// StepReconcile is all steps: an event that panics waits with it.
	StepReconcile = "reconcile"
)

// One step that waits.
type Wait struct {
	// The step: "plan", "create/<pipelinerun>", "cancel/<pipelinerun>", "notify", "supersede",
	// "report", "reply", "validation", "failures", "renew", "annotate", "source-lines", "prune", or
	// "reconcile" for all of them after a panic.
	Step string `json:"step"`
	// The class of the problem, which decides what happens next.
	Class string `json:"class"`
	// One word for the problem. It does not change between retries.
	Reason string `json:"reason"`
	// The problem as a sentence. It does not change between retries: it has no times, counters or
	// secrets.
	Message string `json:"message"`
	// When the step first had this reason.
	Since metav1.Time `json:"since"`
	// When the step is retried at the earliest; unset when the workqueue's backoff
	// decides.
	// +optional
	NotBefore *metav1.Time `json:"notBefore,omitempty"`
}
