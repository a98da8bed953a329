// SPDX-License-Identifier: Apache-2.0

package status

// The titles of checks. Those of Pipelines-as-Code have its words: people and tools know them.
const (
	titleStarted   = "CI has Started"
	titleSuccess   = "Success"
	titleCanceled  = "Cancelled"
	titleEnding    = "Cancelling"
	titlePending   = "Pending approval, waiting for an /ok-to-test"
	titleUncreated = "Accepted, starting soon"
	titleQueued    = "Queued"
	titleSkipped   = "CI Skipped"
	titleApproved  = "Approved"
	titleDecided   = "Decided"
	titleUnmatched = "Skipped"

	titleWaiting     = "Waiting for %s"
	titleRejected    = "Not started: rejected by %s"
	titleInvalid     = "Not started: invalid definition"
	titleInvalidFile = "Not started: invalid %s"
)

// What a check says of attempts that the cluster made fail.
const (
	titleAttempt       = "Attempt %d of %d: attempt %d ended because of a cluster problem (%s)"
	textEarlierAttempt = "* Attempt %d of %d, PipelineRun %s, ended because of a cluster problem: %s."
	textThisAttempt    = "* Attempt %d of %d has replaced it. You don't need to do anything."
	textNextAttempt    = "* Attempt %d of %d is next. You don't need to do anything."
	textNoAttempt      = "* Attempt %d of %d was not created."
	textLastAttempt    = "* Attempt %d of %d, PipelineRun %s, has the result below."
)

// What a summary says of a pipeline, whose name it begins with.
const (
	saysSucceeded  = "has <b>successfully</b> validated your commit."
	saysNotStarted = "did <b>not start</b>."
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
	textCancelRefused = "The cluster has refused this%s. Plumbline keeps trying; until then the run continues. %s"
	textCancelled     = "This run was cancelled: %s."
	textDeleted       = "PipelineRun %s was deleted"
	textArchived      = "It may be [in Tekton Results](%s)."
	textNotCreated    = "PipelineRun %s was not created: %s"
	textSkipped       = "Commit contains a skip CI command. Use /test or /retest to manually trigger CI if needed."
	textUnmatched     = "This change does not start the pipeline. Its annotations do not match:"
	textUncreated     = "Accepted. The pipeline starts soon."
	textUndecided     = "Which pipelines start is not decided yet."
	textDetails       = "Details (%s)"
	textTaskFailed    = "<p>Task <b>%s</b> failed%s:</p>"
	textLogAt         = "<p>Full log: %s</p>"
	textLogCommand    = "<p>Full log, with access to the cluster: <code>tkn taskrun logs -n %s %s</code></p>"
	textUnserved      = "This event can no longer be processed"

	wordsDeleted    = "the PipelineRun was deleted"
	wordsNoReason   = "no reason was given"
	wordsLine       = ", line %d"
	wordsDefinition = "the definition"
)

// Who has to act on a check that waits: exactly one of these ends its text.
const (
	actNone           = "You don't need to do anything."
	actAdministrators = "Ask your cluster administrators to fix this."
)

// Why a run cannot be created now.
const (
	waitQuotaNamed   = "The ResourceQuota %s is exhausted; the pipeline starts when other runs have finished."
	waitQuota        = "A ResourceQuota is exhausted; the pipeline starts when other runs have finished."
	waitRateLimit    = "The rate limit of %s is reached; the pipeline starts by itself when it is lifted."
	waitAccess       = "%s does not accept Plumbline's login, or the login lacks a permission."
	waitCommit       = "%s does not show the commit yet."
	waitConfirmation = "%s has not confirmed the event yet."
	waitService      = "%s is unavailable or refuses a request; Plumbline tries again by itself."
	waitReference    = "A Task or Pipeline that it refers to cannot be read now; Plumbline tries again by itself."
	waitWebhook      = "The webhook %s of the cluster does not answer; Plumbline tries again by itself."
	waitCluster      = "The cluster cannot create the PipelineRun now; Plumbline tries again by itself."
	waitForbidden    = "Plumbline lacks a permission in namespace %s."
	waitKey          = "A Secret or a key that the pipeline needs does not exist."
	waitNamespace    = "Namespace %s does not exist."
	waitOperator     = "Something in the cluster or in the settings of Plumbline has to be fixed."

	waitNotAuthor = "Nothing is wrong with your change."
)

// Why a check does not show the log of a failed step.
const (
	logPending     = "The log is not available yet. It is added here if the cluster returns it within a minute."
	logForbidden   = "Plumbline may not read logs in namespace %s: there is no binding of its ClusterRole whose name ends in -logs."
	logGone        = "The log no longer exists: the pod was deleted, or its node does not have the log."
	logEmpty       = "The step has written nothing."
	logUnmasked    = "The log is not shown, because Plumbline cannot read all Secrets of this run and so cannot mask their values: %s."
	logUnmaskable  = "The log is not shown, because the Secrets of this run are too large to be masked."
	logUnavailable = "The cluster did not return the log within a minute."
)

// What a reply says of a command.
const (
	replyNothing         = "nothing was started"
	replyCancels         = "cancelling the runs of %s that existed when you commented."
	replyNothingToCancel = "found no runs of %s to cancel."
)

// The comment about the files of .tekton.
const (
	validationErrors = "Some pipelines of `.tekton` are refused at %s, so they did not start:"
	validationMore   = "And %d more."
	validationAdvice = "Fix them and push again."
	validationFixed  = "Fixed: no pipeline of `.tekton` is refused any more at %s."
)

// The comment about failed pipelines.
const (
	failuresFailed = "Some pipelines have failed at %s:"
	failuresAdvice = "The checks of the commit show their logs. Comment `/retest` to start the failed pipelines again."
	failuresFixed  = "Fixed: no pipeline is failed any more at %s."
)

// The answer to /why: what became of the pipelines. The sentences follow the name of a pipeline,
// but for those of the second block.
const (
	whySucceeded  = "started and succeeded."
	whyFailed     = "started and failed: %s"
	whyCancelled  = "started and was cancelled: %s"
	whyDeleted    = "started, and its PipelineRun was deleted before it finished."
	whyRuns       = "started and is still running."
	whyRefused    = "did not start, because its definition was refused: %s"
	whyQueued     = "has not started yet, because it waits for a slot: %s"
	whyWaits      = "has not started yet: %s"
	whyNext       = "was ended by a cluster problem, and its next attempt waits: %s"
	whyStarts     = "is about to start."
	whyNotStarted = "did not start: %s"
	whyUndecided  = "is not decided yet: %s"

	whyUnplanned = "Which pipelines start is not decided yet. Ask again in a minute."
	whyWaiting   = "Which pipelines start is not decided yet: %s"
	whyPending   = "Nothing has started, because the commit waits for approval: %s"
	whyNothing   = "Nothing has started: %s"
	whyMore      = "And %d more."

	replyExplained = "answered. Write it again for the current state."
	replyExplains  = "What happened to the pipelines of this commit:"
)
