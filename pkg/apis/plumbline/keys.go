// SPDX-License-Identifier: Apache-2.0

package plumbline

const (
	// EventLabel on a PipelineRun, Secret or EventPayload is the name of the GitEvent it belongs
	// to.
	EventLabel = GroupName + "/event"
	// SubjectLabel on a GitEvent is the value of GitEventSpec.Subject: all events of a pull
	// request, or of a commit, have the same. Events of earlier versions have none.
	SubjectLabel = GroupName + "/subject"
	// TrustLabel on a PipelineRun is TrustUntrusted if it runs the approved commit of an untrusted
	// user. No author can set it, so admission policies can rely on it.
	TrustLabel = GroupName + "/trust"
	// TrustUntrusted is the value of TrustLabel.
	TrustUntrusted = "untrusted"
	// InstallationLabel on a PipelineRun or Secret is the namespace of the Plumbline installation
	// that created it.
	InstallationLabel = GroupName + "/installation"
	// ReportedLabel on a PipelineRun is Reported once the Git service has accepted its final report,
	// if it has no label pipelinesascode.tekton.dev/state.
	ReportedLabel = GroupName + "/reported"
	// Reported is the value of ReportedLabel.
	Reported = "true"
	// RunKeyAnnotation on a PipelineRun is its idempotency key:
	// <namespace>/<GitEvent>/<file>#<document>. An object with the planned name and this key is
	// Plumbline's, whichever process created it. With another key it is foreign (C10).
	RunKeyAnnotation = GroupName + "/run-key"
	// DefinitionAnnotation on a PipelineRun is the name in its definition, if that has
	// placeholders. The name of the PipelineRun is derived from it.
	DefinitionAnnotation = GroupName + "/definition"
	// AttemptLabel on a PipelineRun is the number of the attempt, from 1 on. A later one replaces a
	// PipelineRun that the cluster made fail.
	AttemptLabel = GroupName + "/attempt"
	// InfrastructureRetriesAnnotation on a pipeline says how many times it is started again after
	// the cluster made it fail.
	InfrastructureRetriesAnnotation = GroupName + "/infrastructure-retries"
	// TokenAnnotation on a git-auth secret is TokenOwn when its tokens were minted for its run
	// alone. They are revoked when the event settles. Other tokens are the service's configured
	// ones.
	TokenAnnotation = GroupName + "/token"
	// TokenOwn is the value of TokenAnnotation.
	TokenOwn = "own"
	// RepositoryIDAnnotation on a Repository says which repository of the Git service its URL
	// stands for: "<account id>/<repository id>". By default it is the repository of the first
	// event.
	RepositoryIDAnnotation = GroupName + "/repository-id"
	// TraceparentAnnotation on a GitEvent is the W3C traceparent of the span that accepted its
	// delivery; absent when tracing is off.
	TraceparentAnnotation = GroupName + "/traceparent"
	// RepositoryAnnotation on a GitEvent is the namespace and name of its Repository. Receivers
	// watch only the metadata of unsettled events, to know how much each Repository uses.
	RepositoryAnnotation = GroupName + "/repository"
	// StoredBytesAnnotation on a GitEvent is how many bytes its payload and its plan take in etcd.
	StoredBytesAnnotation = GroupName + "/stored-bytes"
	// PlanBytesAnnotation on a GitEvent is how many of these bytes are the plan's, absent for none.
	// The controller sets it before it stores the plan.
	PlanBytesAnnotation = GroupName + "/plan-bytes"
	// DeliveredAgainAnnotation on a GitEvent is when a receiver last received a redelivery of it,
	// in RFC 3339. Its tombstone is stored for some time from then on.
	DeliveredAgainAnnotation = GroupName + "/delivered-again"
	// CancelAnnotation followed by the name of the GitEvent that cancels is a Cancellation in
	// JSON. It is set on each GitEvent whose runs are cancelled.
	CancelAnnotation = GroupName + "/cancel."
	// OutdatedAnnotation is set on an unplanned GitEvent when another event of the same pull
	// request or commit is about to decide by earlier runs. The value is the GitEvent's
	// resourceVersion at that time. A plan that was decided before, without knowledge of that
	// event, can then not be stored.
	OutdatedAnnotation = GroupName + "/outdated"
	// PullAnnotation followed by the number of a pull request is the name of the pull request's
	// GitEvent. It is set on the unplanned GitEvent of a push to its branch: if the pull request's
	// event runs the commit, the push does not.
	PullAnnotation = GroupName + "/pull-request-"
	// PlanDigestAnnotation on a GitEvent is a prefix of the digest of what was last added to the
	// plan.
	PlanDigestAnnotation = GroupName + "/plan-digest"
)
