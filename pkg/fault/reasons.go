// SPDX-License-Identifier: Apache-2.0

package fault

// The reasons of FromKube and FromHTTP. They are part of the API: conditions, metrics and texts use
// them.
const (
	// ReasonWebhookUnavailable: an admission or conversion webhook could not be called (K1 to K6).
	// WebhookName names it.
	ReasonWebhookUnavailable = "AdmissionWebhookUnavailable"
	// ReasonWebhookFailed: a webhook was reached and failed itself (K8).
	ReasonWebhookFailed = "AdmissionWebhookFailed"
	// ReasonDenied: a webhook, a policy or an admission plug-in denied the object (K7, K10, K15).
	ReasonDenied = "AdmissionDenied"
	// ReasonDenialEchoesOutage: a denial with the text of an outage (K9). See Error.Believe.
	ReasonDenialEchoesOutage = "AdmissionDenialEchoesOutage"
	// ReasonInvalid: the API server's own validation (K11).
	ReasonInvalid = "Rejected"
	// ReasonOverLimit: a PipelineRun exceeds one of Plumbline's own limits, such as a level of the
	// Pod Security Standards.
	ReasonOverLimit = "AboveCeiling"
	// ReasonTooLarge: the object can never be stored (K27).
	ReasonTooLarge = "TooLarge"
	// ReasonNoDryRun: a webhook does not support dry run, so the object was not checked (K38).
	ReasonNoDryRun = "DryRunNotSupported"
	// ReasonForbidden: a permission is missing in the cluster (K12).
	ReasonForbidden = "Forbidden"
	// ReasonQuota: a ResourceQuota is exhausted (K13).
	ReasonQuota = "QuotaExceeded"
	// ReasonBusy: the event is queued behind other events. That is not a problem, so it is never
	// recorded.
	ReasonBusy = "Busy"
	// ReasonPullRequestEvent: a push waits for the event of the pull request that has the same
	// commit.
	ReasonPullRequestEvent = "PullRequestEvent"
	// ReasonConcurrencyLimit: the Repository has as many runs as its concurrency_limit.
	ReasonConcurrencyLimit = "ConcurrencyLimit"
	// ReasonUnhandled: an Invalid or Ignored fault became neither an answer nor an end of the
	// event; a defect of Plumbline.
	ReasonUnhandled = "Unhandled"
	// ReasonNamespaceTerminating: nothing can be created any more (K16).
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonNamespaceMissing: the namespace does not exist (K18).
	ReasonNamespaceMissing = "NamespaceMissing"
	// ReasonNotServed: the kind or version is not served (K19).
	ReasonNotServed = "NotServed"
	// ReasonNotFound: the object is gone and the caller did not handle that (K20, G7, G8).
	ReasonNotFound = "NotFound"
	// ReasonConflict: the object changed meanwhile (K14, K21).
	ReasonConflict = "Conflict"
	// ReasonAlreadyExists: it exists and the caller did not handle that (K22, K23).
	ReasonAlreadyExists = "AlreadyExists"
	// ReasonAlreadyStarted and ReasonAlreadyComplete: Tekton refuses an update of a run in this
	// state (K37).
	ReasonAlreadyStarted  = "AlreadyStarted"
	ReasonAlreadyComplete = "AlreadyComplete"
	// ReasonStoreFull: etcd has no space left (K26).
	ReasonStoreFull = "StoreFull"
	// ReasonTimeout: no answer in time (K28, K35).
	ReasonTimeout = "Timeout"
	// ReasonThrottled: the API server asks for a later retry (K25, K29).
	ReasonThrottled = "Throttled"
	// ReasonUnavailable: the API server cannot serve (K14, K17, K24, K30, K31).
	ReasonUnavailable = "Unavailable"
	// ReasonUnauthorized: the API server does not accept our token at the moment (K32).
	ReasonUnauthorized = "Unauthorized"
	// ReasonExpired: a list or watch is too old (K33).
	ReasonExpired = "ResourceExpired"
	// ReasonNotSupported: client and cluster are not compatible (K34).
	ReasonNotSupported = "NotSupported"
	// ReasonUnreachable: the API server could not be reached (K35).
	ReasonUnreachable = "Unreachable"
	// ReasonCanceled: our own shutdown (K36), which is not reported.
	ReasonCanceled = "Canceled"
	// ReasonUnknownCode: a code that docs/errors.md does not name.
	ReasonUnknownCode = "UnknownAnswer"

	// ReasonRateLimited: the Git service's primary limit (G1, G4, L1).
	ReasonRateLimited = "RateLimited"
	// ReasonSecondaryRateLimited: GitHub's secondary limit (G2, G3).
	ReasonSecondaryRateLimited = "SecondaryRateLimited"
	// ReasonCredentialsMissing: there are no credentials for the Git service, in the Secret or at
	// all.
	ReasonCredentialsMissing = "CredentialsMissing"
	// ReasonCredentialsInvalid: the values cannot be credentials.
	ReasonCredentialsInvalid = "CredentialsInvalid"
	// ReasonSecretMissing: a Secret or a key of it that a run needs does not exist.
	ReasonSecretMissing = "SecretMissing"
	// ReasonCredentialsRefused: the Git service does not accept the credentials (G5, L2).
	ReasonCredentialsRefused = "CredentialsRefused"
	// ReasonPermissionMissing: the credentials lack a permission, or a policy of the service
	// forbids the call (G6, L3).
	ReasonPermissionMissing = "PermissionMissing"
	// ReasonGitConflict: the Git service is busy with the same thing (G9, L5).
	ReasonGitConflict = "GitServiceConflict"
	// ReasonCommitUnknown: the commit is not known there yet (G10).
	ReasonCommitUnknown = "CommitUnknown"
	// ReasonNotClaimedYet: a Repository names a URL, and no controller has decided yet which
	// Repository may serve it.
	ReasonNotClaimedYet = "NotClaimedYet"
	// ReasonTeamNotFound: the service has no team or group of a name that settings.policy lists, or
	// does not show it to us.
	ReasonTeamNotFound = "TeamNotFound"
	// ReasonNotConfirmed: a service that does not sign its deliveries does not confirm one of them
	// (yet).
	ReasonNotConfirmed = "NotConfirmed"
	// ReasonGitRejected: the Git service does not accept what we sent: a defect of Plumbline, never
	// of the author's run (G10).
	ReasonGitRejected = "RejectedByGitService"
	// ReasonGitUnavailable: 5xx (G12, L7).
	ReasonGitUnavailable = "GitServiceUnavailable"
	// ReasonGitUnreachable: no answer (G12, X1).
	ReasonGitUnreachable = "GitServiceUnreachable"
	// ReasonGitGone: gone or blocked for legal reasons (G13).
	ReasonGitGone = "GoneAtGitService"
	// ReasonGitMoved: the repository has another name now (G8).
	ReasonGitMoved = "MovedAtGitService"
	// ReasonInstallationGone: the Git service says for certain that the App is not installed there
	// any more (G8).
	ReasonInstallationGone = "InstallationGone"
	// ReasonOtherAddress: a web address that is not one of the Git service's files.
	ReasonOtherAddress = "OtherAddress"
	// ReasonTransition: GitLab's state machine does not allow the step: read the status and compare
	// (L6).
	ReasonTransition = "StatusTransition"
)
