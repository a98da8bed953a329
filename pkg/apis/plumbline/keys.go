// SPDX-License-Identifier: Apache-2.0

package plumbline

const (
	// EventLabel on a PipelineRun, Secret or EventPayload is the name of the GitEvent it belongs
	// to.
	EventLabel = GroupName + "/event"
	// SubjectLabel on a GitEvent is what it is about (GitEventSpec.Subject): all events of a pull
	// request or of a commit have one value. Events of versions before have none.
	SubjectLabel = GroupName + "/subject"
	// TrustLabel on a PipelineRun is TrustUntrusted if it runs the commit of somebody who may not
	// start anything, which somebody else has approved. Admission policies can act on it: no author
	// can write it.
	TrustLabel = GroupName + "/trust"
	// TrustUntrusted is the value of TrustLabel.
	TrustUntrusted = "untrusted"
	// InstallationLabel on a PipelineRun or Secret is the namespace of the Plumbline installation
	// that made it.
	InstallationLabel = GroupName + "/installation"
	// RunKeyAnnotation on a PipelineRun is its idempotency key:
	// <namespace>/<GitEvent>/<file>#<document>. An object with the planned name and this key is
	// ours whoever created it; with another key it is foreign (C10).
	RunKeyAnnotation = GroupName + "/run-key"
	// DefinitionAnnotation on a PipelineRun is its name as it is defined, if that has placeholders:
	// the name of the PipelineRun is made of it.
	DefinitionAnnotation = GroupName + "/definition"
	// TokenAnnotation on a git-auth secret is TokenOwn when its tokens were minted for its run
	// alone: they are revoked when the event settles. Others are a service's configured ones, or
	// those that versions before shared among runs.
	TokenAnnotation = GroupName + "/token"
	// TokenOwn is the value of TokenAnnotation.
	TokenOwn = "own"
	// RepositoryIDAnnotation on a Repository says which repository of the Git service its URL
	// stands for: "<account id>/<repository id>". Without it that is the one of the first event.
	RepositoryIDAnnotation = GroupName + "/repository-id"
	// TraceparentAnnotation on a GitEvent is the W3C traceparent of the span that accepted its
	// delivery; absent when tracing is off.
	TraceparentAnnotation = GroupName + "/traceparent"
	// RepositoryAnnotation on a GitEvent is the namespace and name of its Repository. Receivers
	// watch the metadata of open events to know what they use.
	RepositoryAnnotation = GroupName + "/repository"
	// StoredBytesAnnotation on a GitEvent is the bytes that its payload and its plan take in etcd.
	StoredBytesAnnotation = GroupName + "/stored-bytes"
	// PlanBytesAnnotation on a GitEvent is how many of these are the plan's, absent for none: the
	// controller adds them before it stores the plan.
	PlanBytesAnnotation = GroupName + "/plan-bytes"
	// DeliveredAgainAnnotation on a GitEvent is when a receiver last met it with a redelivery, in
	// RFC 3339: what remembers it is kept from then.
	DeliveredAgainAnnotation = GroupName + "/delivered-again"
	// CancelAnnotation and the name of a GitEvent that cancels, on a GitEvent whose runs it ends,
	// are a Cancellation in JSON.
	CancelAnnotation = GroupName + "/cancel."
	// OutdatedAnnotation on a GitEvent that is not planned is its version when another event of the
	// same pull request or commit was about to decide by what has run: whatever it had decided by
	// then without knowing of that one cannot be recorded any more.
	OutdatedAnnotation = GroupName + "/outdated"
	// PullAnnotation and the number of a pull request, on the GitEvent of a push that was not planned
	// yet, is the name of the pull request's GitEvent that found it: the push is left to that one if
	// that one runs the commit.
	PullAnnotation = GroupName + "/pull-request-"
	// PlanDigestAnnotation on a GitEvent is the start of the digest of what was added last.
	PlanDigestAnnotation = GroupName + "/plan-digest"
)
