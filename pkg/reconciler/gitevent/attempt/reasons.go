// SPDX-License-Identifier: Apache-2.0

package attempt

// The reasons that this package gives. docs/reasons.md lists each with what it says.
const (
	reasonPending = "Pending"

	// Kubernetes Events about what normally happens. The first four are those of Pipelines-as-Code.
	reasonMatched          = "RepositoryMatchedPipelineRun"
	reasonNoMatch          = "RepositoryNoMatch"
	reasonPermissionDenied = "RepositoryPermissionDenied"
	reasonRunRefused       = "RepositoryPipelineRun"
	reasonSkipped          = "SkipCI"
	reasonRunStarted       = "PipelineRunStarted"
	reasonRunSucceeded     = "PipelineRunSucceeded"
	reasonRunFailed        = "PipelineRunFailed"
	reasonRunEnded         = "PipelineRunEnded"
)

// ReasonAttemptFailed is the reason of the wait for another attempt of a run that the cluster made
// fail.
const ReasonAttemptFailed = "AttemptFailed"
