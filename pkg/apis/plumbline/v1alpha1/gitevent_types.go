// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GitEvent is one verified delivery of a Git service. Its spec is what was received; its status is
// what Plumbline found out and did. The receiver creates it before it acknowledges the delivery,
// and never changes the spec. Only the gitevent reconciler writes the status.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=gitevents,scope=Namespaced,shortName=ge,categories=plumbline
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
// +kubebuilder:selectablefield:JSONPath=`.status.lateSecrets`
// +kubebuilder:selectablefield:JSONPath=`.status.unreported`
// +kubebuilder:printcolumn:name="Repository",type=string,JSONPath=`.spec.repository.url`
// +kubebuilder:printcolumn:name="Ref",type=string,JSONPath=`.status.ref`
// +kubebuilder:printcolumn:name="Outcome",type=string,JSONPath=`.status.outcome`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Trigger",type=string,JSONPath=`.spec.trigger`,priority=1
// +kubebuilder:printcolumn:name="Sender",type=string,JSONPath=`.spec.sender`,priority=1
// +kubebuilder:printcolumn:name="Commit",type=string,JSONPath=`.spec.sha`,priority=1
// +kubebuilder:printcolumn:name="Disposition",type=string,JSONPath=`.status.disposition`,priority=1
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,priority=1
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:validation:XValidation:rule="!has(self.payload) || has(oldSelf.payload) && self.payload == oldSelf.payload",message="payload may be removed, and neither be changed nor added"
// +kubebuilder:validation:XValidation:rule="!has(self.payload) || !has(self.status) || !has(self.status.phase) || self.status.phase != 'Settled'",message="a settled event has no payload: remove it first"
type GitEvent struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// The decoded delivery. It never changes after creation.
	// +structType=atomic
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable: a GitEvent records what was received"
	Spec GitEventSpec `json:"spec"`
	// The delivery's raw body, compressed with gzip, if that is smaller than
	// 32 KiB. Then spec.payload.chunks is 0, and spec.payload has the digest and size of
	// the body. It is removed before the event settles. It is not part of spec, so that spec never
	// changes.
	// +optional
	// +kubebuilder:validation:MaxLength=43692
	// The schema says only that it is text: CEL cannot read base64 in the alphabet that Go writes.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	Payload []byte `json:"payload,omitempty"`
	// What Plumbline found out about the event and did for it.
	// +optional
	// +structType=atomic
	Status GitEventStatus `json:"status,omitempty"`
}

// The types of spec and status are atomic, because each has one writer. Otherwise the API server
// would compute at each write who owns which of their fields, and store that in
// metadata.managedFields: a third of the object.

// GitEventList is a list of GitEvents.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type GitEventList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []GitEvent `json:"items"`
}

// Trigger is the kind of a delivery, in the words of Pipelines-as-Code (PaC).
//
// +kubebuilder:validation:Enum=push;pull_request;merge_group
type Trigger string

const (
	// TriggerPush is a push to a branch or a tag.
	TriggerPush Trigger = "push"
	// TriggerPullRequest is a new revision or a new state of a pull or merge request.
	TriggerPullRequest Trigger = "pull_request"
	// TriggerMergeGroup is a commit that GitHub's merge queue wants to merge, or no longer.
	TriggerMergeGroup Trigger = "merge_group"
)

// GitEventSpec is one decoded, immutable delivery. Decode fills everything except Repository,
// Payload and ReceivedAt, which the receiver adds.
//
// +kubebuilder:validation:XValidation:rule="size(self.sha) > 0 || has(self.comment) || has(self.incoming)",message="sha may be empty only for a comment or a request to /incoming, which name no commit"
type GitEventSpec struct {
	// The name of the decoder: "github" or "gitlab".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Provider string `json:"provider"`
	// The Git service's host, in lower case, with its port if the repository's web URL has
	// one.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Host string `json:"host"`
	// The service's id of the delivery (GitHub: X-GitHub-Delivery). A redelivery has
	// the same.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	DeliveryKey string `json:"deliveryKey"`
	// Body is set where the service's signature does not cover DeliveryKey, and the body identifies
	// the event. The event's name is then derived from it. Decode fills it in; it is not stored.
	Body *BodyIdentity `json:"-"`
	// The kind of the delivery.
	Trigger Trigger `json:"trigger"`
	// The name that Pipelines-as-Code has for the event, in the label event-type ("push",
	// "pull_request", "Merge Request").
	// +kubebuilder:validation:MaxLength=63
	EventType string `json:"eventType"`
	// The service's name of the action ("opened", "synchronize"); empty for pushes.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Action string `json:"action,omitempty"`
	// The Repository object that owns the URL.
	Repository RepositoryReference `json:"repository"`
	// The repository at the Git service that the event belongs to. For a pull request it
	// is the base repository.
	Project Project `json:"project"`
	// The GitHub App installation, 0 elsewhere.
	// +optional
	InstallationID int64 `json:"installationID,omitempty"`
	// The commit that runs and that checks are reported on: 40 or 64 hexadecimal digits. It
	// is empty for a comment on a pull request, because the delivery has no commit, and for a
	// request to /incoming. The plan then takes the head of the pull request or branch, and stores
	// it in status.plan.headSHA.
	// +kubebuilder:validation:Pattern=`^([0-9a-f]{40}([0-9a-f]{24})?)?$`
	SHA string `json:"sha"`
	// The commit that a push replaced, also in a pull request's branch, or that a merge group is
	// based on. It is empty for new branches and for other events.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Before string `json:"before,omitempty"`
	// The ref that was pushed ("refs/heads/main", "refs/tags/v1"), or the target branch of a pull
	// request or merge group without prefix ("main"). It is empty for a comment on a commit: the
	// plan stores the ref in status.plan.ref.
	// +kubebuilder:validation:MaxLength=1024
	BaseRef string `json:"baseRef"`
	// The same as baseRef for a push, and the source branch without prefix for a pull request. For
	// a merge group it is the branch of the queue ("gh-readonly-queue/main/pr-12-…").
	// +kubebuilder:validation:MaxLength=1024
	HeadRef string `json:"headRef"`
	// The web URL of the repository that has headRef: for a pull request from a fork,
	// the fork's.
	// +kubebuilder:validation:MaxLength=2048
	HeadURL string `json:"headURL"`
	// The login of the account that the event is attributed to. At GitHub it is the
	// pusher, the author of the pull request, or the author of the comment.
	// +kubebuilder:validation:MaxLength=255
	Sender string `json:"sender"`
	// The login of the account that caused a pull request's event: it opened or reopened
	// the pull request, pushed to its branch, or set the label. It is empty for pushes and
	// comments, where it is the sender, and in events of earlier versions.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Actor string `json:"actor,omitempty"`
	// The pull or merge request; set if the trigger is pull_request.
	// +optional
	PullRequest *PullRequest `json:"pullRequest,omitempty"`
	// Set when the event is a comment. For a comment on a pull request, sha, baseRef, headRef,
	// headURL and headProjectID are empty: the delivery does not contain them. A comment without a
	// pull request is on the commit sha; then baseRef and headRef are empty.
	// +optional
	Comment *Comment `json:"comment,omitempty"`
	// Set when a user requested on the Git service's page that a check runs again. The
	// plan finds everything except sha in earlier events.
	// +optional
	Rerun *Rerun `json:"rerun,omitempty"`
	// Set when the event is a request to POST /incoming, or the re-run of one. The trigger of such
	// a request is push, and project.id and installationID are 0: the plan finds them by the
	// project's URL, and stores them in status.plan.located.
	// +optional
	Incoming *Incoming `json:"incoming,omitempty"`
	// What the delivery says about the commit. If it is absent, it is read from the service.
	// +optional
	Commit *Commit `json:"commit,omitempty"`
	// The delivery's headers that CEL expressions may read, with canonical names.
	// Headers that contain a secret are never stored.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Headers map[string]string `json:"headers,omitempty"`
	// Where the raw body is: in EventPayload objects, or in the GitEvent's own payload
	// if there are no chunks.
	Payload BlobReference `json:"payload"`
	// When the event happened by the Git service's clock, in whole seconds, as the
	// delivery says: when the pull request was changed, or the comment written. It is absent if the
	// delivery does not say, and in events of earlier versions.
	// +optional
	HappenedAt *metav1.Time `json:"happenedAt,omitempty"`
	// When the receiver accepted the delivery.
	ReceivedAt metav1.Time `json:"receivedAt"`
}

// MaxPayloadBytes is the limit below which a GitEvent stores its compressed payload itself. Nearly
// every delivery takes less than 10 KiB. Each write of the status stores the whole event again, so
// larger payloads are stored separately.
const MaxPayloadBytes = 32 << 10

// BlobReference names a blob that is stored in EventPayload objects of the same namespace, <name>-0
// to <name>-<chunks-1>.
type BlobReference struct {
	// The common prefix of the objects' names, empty if there are none.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// "sha256:<64 hex>" of the uncompressed bytes.
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest"`
	// The number of objects. It is 0 for a delivery's body that the GitEvent stores
	// itself, in payload.
	// +kubebuilder:validation:Minimum=0
	Chunks int32 `json:"chunks"`
	// The number of uncompressed bytes.
	Size int64 `json:"size"`
}
