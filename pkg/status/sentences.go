// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"

	"github.com/plumbline-ci/plumbline/pkg/apis/plumbline/v1alpha1"
)

// The titles of checks. Those of Pipelines-as-Code have its words: people and tools know them.
const (
	titleStarted   = "CI has Started"
	titleSuccess   = "Success"
	titleFailed    = "Failed"
	titleCanceled  = "Cancelled"
	titleRefused   = "pipelinerun start failure"
	titleEnding    = "Cancelling"
	titlePending   = "Pending approval, waiting for an /ok-to-test"
	titleUncreated = "Waiting to be created"
	titleQueued    = "Queued"
	titleSkipped   = "CI Skipped"
	titleApproved  = "Approved"
	titleDecided   = "Decided"
	titleUnmatched = "Skipped"
)

// The titles of failed checks whose cause is known.
const (
	titleFailedBy = "Failed: %s"
	titleCluster  = "Cluster problem: %s. Your change is not the cause."
)

// What a check says of attempts that the cluster made fail.
const (
	titleAttempt       = "Attempt %d of %d: attempt %d ended because of a cluster problem (%s)"
	textEarlierAttempt = "* Attempt %d of %d, PipelineRun %s, ended because of a cluster problem: %s."
	textThisAttempt    = "* Attempt %d of %d has replaced it. You don't need to do anything."
	textLastAttempt    = "* Attempt %d of %d, PipelineRun %s, has the result below."
)

// failedTitle returns the title of a failed check.
func failedTitle(verdict v1alpha1.Verdict, cause string) string {
	switch {
	case cause == "":
		return titleFailed
	case verdict == v1alpha1.VerdictInfrastructure:
		return fmt.Sprintf(titleCluster, cause)
	}
	return fmt.Sprintf(titleFailedBy, cause)
}

func exited(step, task string, exit int32) string {
	return fmt.Sprintf("step %s of task %s exited with code %d", code(step), code(task), exit)
}

// What a summary says of a pipeline, whose name it begins with.
const (
	saysSucceeded  = "has <b>successfully</b> validated your commit."
	saysFailed     = "has <b>failed</b>."
	saysCancelled  = "has been <b>cancelled</b>."
	saysCancelling = "is being cancelled."
	saysQueued     = "is queued."
	saysRunning    = "is running."
	saysDecided    = "is no longer waiting."
	saysPending    = "is waiting for approval."
	saysApproved   = "is no longer waiting for approval."
	saysSkipped    = "- CI has been skipped"
	saysUnmatched  = "does not run for this change."
)

// The texts of checks; the longer ones are files below templates.
const (
	textApproved      = "An account with the permission has started the pipelines of this commit. Their own checks show the results."
	textApprovedBy    = "The checks of its pipelines show the results. Without such checks, no pipeline runs for this commit."
	textCancelling    = "This run is being cancelled: %s."
	textCancelRefused = "It is still running: the request to cancel it has been refused%s (%s) and is retried: %s"
	textCancelled     = "This run was cancelled: %s."
	textDeleted       = "PipelineRun %s was deleted"
	textNotCreated    = "PipelineRun %s was not created: %s"
	textSkipped       = "Commit contains a skip CI command. Use /test or /retest to manually trigger CI if needed."
	textUnmatched     = "This change does not start the pipeline. Its annotations do not match:"
	textUndecided     = "Which pipelines start is not decided yet."
	textUnserved      = "This event can no longer be processed"

	wordsDeleted  = "the PipelineRun was deleted"
	wordsNoReason = "no reason was given"
)

// What a reply says of a command.
const (
	replyNothing         = "nothing was started"
	replyCancels         = "cancels the runs of %s that existed when this was written."
	replyNothingToCancel = "found no runs of %s to cancel."
)

// What an author can do about a refusal of the cluster.
const (
	fixIt  = "Fix the definition and push again."
	meetIt = "This is a rule of the cluster. Change the definition so that it meets the rule, or ask the cluster's administrators."
)
