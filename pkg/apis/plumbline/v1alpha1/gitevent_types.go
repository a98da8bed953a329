// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// GitEvent is one verified delivery of a Git service: the spec is what was received, the status
// what was learnt and done. It is written before the delivery is acknowledged; the receiver writes
// the spec once, the gitevent reconciler is the only writer of the status.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=gitevents,scope=Namespaced,categories=plumbline
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

	// Spec is the normalized delivery. It never changes after creation.
	// +structType=atomic
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable: a GitEvent records what was received"
	Spec GitEventSpec `json:"spec"`
	// Payload is the gzip stream of the delivery's raw body if that is less than MaxPayloadBytes;
	// spec.payload.chunks is then 0, and spec.payload says the digest and size of the body. It is
	// removed before the event settles. It is not part of spec, so that spec never changes.
	// +optional
	// +kubebuilder:validation:MaxLength=43692
	//
	// The schema says that it is text, and not which: CEL cannot read base64 as Go writes it (it
	// expects the alphabet of URLs).
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	Payload []byte `json:"payload,omitempty"`
	// +optional
	// +structType=atomic
	Status GitEventStatus `json:"status,omitempty"`
}

// The types of spec and status are atomic: each has one writer, so the API server need not find out
// at each write who owns which of their fields, nor keep that in metadata.managedFields, which
// would be a third of the object.

// GitEventList is a list of GitEvents.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type GitEventList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []GitEvent `json:"items"`
}

// Trigger is what a delivery is about, in PaC's terms.
//
// +kubebuilder:validation:Enum=push;pull_request
type Trigger string

const (
	// TriggerPush is a push to a branch or a tag.
	TriggerPush Trigger = "push"
	// TriggerPullRequest is a new revision or a new state of a pull or merge request.
	TriggerPullRequest Trigger = "pull_request"
)

// GitEventSpec is one normalized, immutable delivery. Decode fills everything except Repository,
// Payload and ReceivedAt, which the recorder adds.
//
// +kubebuilder:validation:XValidation:rule="size(self.sha) > 0 || has(self.comment)",message="sha may be empty for a comment only, which names no commit"
type GitEventSpec struct {
	// Provider is the name of the decoder: "github" or "gitlab".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Provider string `json:"provider"`
	// Host is the Git service's host, with its port if it has one, as in the repository's web URL.
	// Lower case.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Host string `json:"host"`
	// DeliveryKey is the service's id of the delivery, which survives redelivery (GitHub:
	// X-GitHub-Delivery).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	DeliveryKey string `json:"deliveryKey"`
	// Body is set where DeliveryKey is not under the service's signature and the body tells the
	// event from every other one. Decode fills it in and it is not recorded: the event's name is
	// made of it.
	Body *BodyIdentity `json:"-"`
	// Trigger is what the delivery is about.
	Trigger Trigger `json:"trigger"`
	// EventType is PaC's event type, written to the event-type label ("push", "pull_request",
	// "Merge Request").
	// +kubebuilder:validation:MaxLength=63
	EventType string `json:"eventType"`
	// Action is the service's own action ("opened", "synchronize"); empty for pushes.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Action string `json:"action,omitempty"`
	// Repository is the Repository object whose URL claim matched.
	Repository RepositoryReference `json:"repository"`
	// Project is the repository at the Git service that the event belongs to (for a pull request:
	// the base).
	Project Project `json:"project"`
	// InstallationID is the GitHub App installation, 0 elsewhere.
	// +optional
	InstallationID int64 `json:"installationID,omitempty"`
	// SHA is the commit to run on and to report on: 40 or 64 hexadecimal digits. It is empty for a
	// comment on a pull request, whose delivery names none: the plan takes the pull request's head,
	// and keeps it in status.plan.headSHA.
	// +kubebuilder:validation:Pattern=`^([0-9a-f]{40}([0-9a-f]{24})?)?$`
	SHA string `json:"sha"`
	// Before is the commit that a push replaced, to a pull request's branch as well; empty for what
	// is new or was not pushed.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Before string `json:"before,omitempty"`
	// BaseRef is the ref that is pushed to ("refs/heads/main", "refs/tags/v1"), or the target
	// branch of a pull request without prefix ("main"). It is empty for a comment on a commit: the
	// plan keeps it in status.plan.ref.
	// +kubebuilder:validation:MaxLength=1024
	BaseRef string `json:"baseRef"`
	// HeadRef is BaseRef for a push, the source branch without prefix for a pull request.
	// +kubebuilder:validation:MaxLength=1024
	HeadRef string `json:"headRef"`
	// HeadURL is the web URL of the repository that holds HeadRef: the fork's for a pull request
	// from a fork.
	// +kubebuilder:validation:MaxLength=2048
	HeadURL string `json:"headURL"`
	// Sender is the login of the account the event is attributed to (GitHub: pusher, author of the
	// pull request, or who wrote the comment).
	// +kubebuilder:validation:MaxLength=255
	Sender string `json:"sender"`
	// Actor is the login of the account that caused the event of a pull request: who opened or
	// reopened it, pushed to its branch, set the label. Empty for pushes and comments, whose Sender
	// it is, and in what versions before recorded.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Actor string `json:"actor,omitempty"`
	// PullRequest is set for TriggerPullRequest.
	// +optional
	PullRequest *PullRequest `json:"pullRequest,omitempty"`
	// Comment is set when the event is a comment. Of one on a pull request SHA, BaseRef, HeadRef,
	// HeadURL and HeadProjectID, which its delivery does not tell, are empty. One without a pull
	// request is on the commit SHA, and then BaseRef and HeadRef are.
	// +optional
	Comment *Comment `json:"comment,omitempty"`
	// Rerun is set when somebody asked on the Git service's page for a check to run again. What the
	// event is about, beside SHA, the plan finds in the records of events before.
	// +optional
	Rerun *Rerun `json:"rerun,omitempty"`
	// Commit is what the payload says of SHA. Providers complete it when it is nil.
	// +optional
	Commit *Commit `json:"commit,omitempty"`
	// Headers are the delivery's headers that CEL expressions may read, canonical names; never one
	// that bears a secret.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Headers map[string]string `json:"headers,omitempty"`
	// Payload tells where the raw body is: in EventPayload objects, or beside the spec if there are
	// no chunks.
	Payload BlobReference `json:"payload"`
	// HappenedAt is when it happened by the Git service's clock, to the second, as the delivery
	// says: when the pull request was changed, when the comment was written. Absent where it does
	// not say, and in what versions before recorded.
	// +optional
	HappenedAt *metav1.Time `json:"happenedAt,omitempty"`
	// ReceivedAt is when the receiver accepted the delivery.
	ReceivedAt metav1.Time `json:"receivedAt"`
}

// RepositoryReference names the Repository object an event belongs to.
type RepositoryReference struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// URL is spec.url of that Repository when the event was received.
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`
}

// Project is a repository at a Git service.
type Project struct {
	// Owner is the organization, user or group path ("acme", "group/sub").
	// +kubebuilder:validation:MaxLength=1024
	Owner string `json:"owner"`
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name"`
	// ID is the service's numeric id.
	ID int64 `json:"id"`
	// OwnerID is the service's numeric id of the organization, user or group; 0 where the delivery
	// does not tell it (GitLab, which is asked for it).
	// +optional
	OwnerID int64 `json:"ownerID,omitempty"`
	// URL is the web URL ("https://github.com/acme/app").
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`
	// CloneURL is the URL for git clone over HTTP where URL does not serve for it; empty for GitHub
	// and GitLab.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	CloneURL string `json:"cloneURL,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	DefaultBranch string `json:"defaultBranch,omitempty"`
}

// PullRequest is the part of a pull or merge request that decisions need.
type PullRequest struct {
	Number int64 `json:"number"`
	// Title is cut to 1024 bytes on a UTF-8 boundary.
	// +optional
	Title string `json:"title,omitempty"`
	// Author is the login of the account that opened it.
	Author string `json:"author"`
	// App is true when the service says that the author is an App. Not every App's login tells.
	// +optional
	App bool `json:"app,omitempty"`
	// AuthorID is the service's id of that account, 0 where the service vouches for the author
	// itself (it signs deliveries).
	// +optional
	AuthorID int64 `json:"authorID,omitempty"`
	// HeadProjectID is the service's id of the repository the branch lives in; 0 when that
	// repository was deleted.
	HeadProjectID int64 `json:"headProjectID"`
	// +optional
	// +kubebuilder:validation:MaxItems=100
	Labels []string `json:"labels,omitempty"`
	// +optional
	Draft bool `json:"draft,omitempty"`
}

// Comment is what somebody wrote on a pull or merge request, or on a commit.
type Comment struct {
	// ID is the service's.
	ID int64 `json:"id"`
	// Body is all of it, as it was written. Decode fills it in and it is not recorded: a settled
	// event is kept for days and has to stay small, whoever comments. The plan reads it from the
	// payload again.
	Body string `json:"-"`
}

// Rerun is what was asked to run again.
type Rerun struct {
	// All is true for all checks of the commit; Check and ExternalID are then empty.
	// +optional
	All bool `json:"all,omitempty"`
	// Check is the check's name as the Git service shows it.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Check string `json:"check,omitempty"`
	// ExternalID is what Plumbline called the check: the name of its PipelineRun, or of its
	// GitEvent.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	ExternalID string `json:"externalID,omitempty"`
	// AppID is the GitHub App whose check it is.
	AppID int64 `json:"appID"`
	// Pulls are the numbers of the pull requests that the delivery names for the commit: those of
	// branches of this repository.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	Pulls []int64 `json:"pulls,omitempty"`
}

// MaxRerunPulls bounds Rerun.Pulls. A commit is the head of more than a few pull requests only if
// somebody makes them so.
const MaxRerunPulls = 10

// Commit is what people know a commit by.
type Commit struct {
	// Title is the first line of the message, cut to 1024 bytes on a UTF-8 boundary.
	// +optional
	Title string `json:"title,omitempty"`
	// URL is the commit's web page.
	// +optional
	URL string `json:"url,omitempty"`
	// SkipCI is true when the full message asks for no CI ("[skip ci]").
	// +optional
	SkipCI bool `json:"skipCI,omitempty"`
}

// MaxPayloadBytes is more than any payload that a GitEvent holds itself, compressed. Nearly every
// delivery takes less than 10 KiB. Each write of the status stores the whole event again, so that a
// large payload is better kept apart.
const MaxPayloadBytes = 32 << 10

// BlobReference names a blob kept in EventPayload objects of the same namespace: <name>-0 …
// <name>-<chunks-1>.
type BlobReference struct {
	// Name is the common part of the objects' names, empty if there are none.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Digest is "sha256:<64 hex>" of the uncompressed bytes.
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest"`
	// Chunks is the number of objects. It is 0 for a delivery's body that the GitEvent holds
	// itself, in payload.
	// +kubebuilder:validation:Minimum=0
	Chunks int32 `json:"chunks"`
	// Size is the number of uncompressed bytes.
	Size int64 `json:"size"`
}
