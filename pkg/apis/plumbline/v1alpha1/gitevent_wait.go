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
	StepReply    = "reply"
	StepRenew    = "renew"
	StepAnnotate = "annotate"
	// StepPrune deletes finished runs beyond max-keep-runs.
	StepPrune = "prune"
	// StepReconcile is all steps: an event that panics waits with it.
	StepReconcile = "reconcile"
)

// Wait is a step that waits.
type Wait struct {
	// Step is "plan", "create/<pipelinerun>", "cancel/<pipelinerun>", "notify", "supersede",
	// "report", "reply", "renew", "annotate", "prune", or "reconcile" for all of them after a
	// panic.
	Step string `json:"step"`
	// Class is the pkg/fault class of the problem.
	Class string `json:"class"`
	// Reason and Message do not change between retries: they have no times, counters or secrets.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Since is when the step first had this reason.
	Since metav1.Time `json:"since"`
	// NotBefore is when the step is retried at the earliest; unset when the workqueue's backoff
	// decides.
	// +optional
	NotBefore *metav1.Time `json:"notBefore,omitempty"`
}
