// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The steps that can wait.
const (
	StepPlan   = "plan"
	StepCreate = "create/" // and the PipelineRun's name
	StepReport = "report"
	StepCancel = "cancel/" // and the PipelineRun's name
	// StepNotify tells other events that they are cancelled.
	StepNotify = "notify"
	// StepSupersede finds out whether a newer event has taken the place of runs, before they are
	// created.
	StepSupersede = "supersede"
	// StepReply writes the comment that answers the commands of a pull request.
	StepReply    = "reply"
	StepRenew    = "renew"
	StepAnnotate = "annotate"
	// StepPrune deletes ended runs beyond the number that is kept.
	StepPrune = "prune"
	// StepReconcile is all of them: an event that panics waits with it.
	StepReconcile = "reconcile"
)

// Wait is a step that waits.
type Wait struct {
	// Step is "plan", "create/<pipelinerun>", "cancel/<pipelinerun>", "notify", "supersede",
	// "report", "reply", "renew", "annotate", "prune", or "reconcile" for all of them after a
	// panic.
	Step string `json:"step"`
	// Class is the pkg/fault class of what it waits for.
	Class string `json:"class"`
	// Reason and Message are stable across retries and free of times, counters and secrets.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Since is when the step first met this reason.
	Since metav1.Time `json:"since"`
	// NotBefore is when the step may be tried again; unset when the workqueue's backoff decides.
	// +optional
	NotBefore *metav1.Time `json:"notBefore,omitempty"`
}
