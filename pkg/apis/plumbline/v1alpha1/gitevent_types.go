// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	duckv1 "knative.dev/pkg/apis/duck/v1"
)

// GitEvent is one verified delivery of a Git service: the spec is what was received, the status what was learnt and
// done. It is written before the delivery is acknowledged; the receiver writes the spec once, the gitevent reconciler
// is the only writer of the status.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=gitevents,scope=Namespaced,categories=plumbline
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Repository",type=string,JSONPath=`.spec.repository.url`
// +kubebuilder:printcolumn:name="Trigger",type=string,JSONPath=`.spec.trigger`
// +kubebuilder:printcolumn:name="SHA",type=string,JSONPath=`.spec.sha`,priority=1
// +kubebuilder:printcolumn:name="Disposition",type=string,JSONPath=`.status.disposition`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GitEvent struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the normalized delivery. It never changes after creation.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable: a GitEvent records what was received"
	Spec GitEventSpec `json:"spec"`
	// +optional
	Status GitEventStatus `json:"status,omitempty"`
}

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

// GitEventSpec is one normalized, immutable delivery. Decode fills everything except Repository, Payload and
// ReceivedAt, which the recorder adds.
type GitEventSpec struct {
	// Provider is the name of the decoder: "github" or "gitlab".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Provider string `json:"provider"`
	// Host is the Git service's host, with its port if it has one, as in the repository's web URL. Lower case.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Host string `json:"host"`
	// DeliveryKey identifies the delivery at the service and survives redelivery (GitHub: X-GitHub-Delivery).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	DeliveryKey string `json:"deliveryKey"`
	// Trigger is what the delivery is about.
	Trigger Trigger `json:"trigger"`
	// EventType is PaC's event type, written to the event-type label ("push", "pull_request", "Merge Request").
	// +kubebuilder:validation:MaxLength=63
	EventType string `json:"eventType"`
	// Action is the service's own action ("opened", "synchronize"); empty for pushes.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Action string `json:"action,omitempty"`
	// Repository is the Repository object whose URL claim matched.
	Repository RepositoryReference `json:"repository"`
	// Project is the repository at the Git service that the event belongs to (for a pull request: the base).
	Project Project `json:"project"`
	// InstallationID is the GitHub App installation, 0 elsewhere.
	// +optional
	InstallationID int64 `json:"installationID,omitempty"`
	// SHA is the commit to run on and to report on: 40 or 64 hexadecimal digits.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{40}([0-9a-f]{24})?$`
	SHA string `json:"sha"`
	// Before is the commit that a push replaced; empty for a new branch or tag and for pull requests.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Before string `json:"before,omitempty"`
	// BaseRef is the ref that is pushed to ("refs/heads/main", "refs/tags/v1"), or the target branch of a pull
	// request without prefix ("main").
	// +kubebuilder:validation:MaxLength=1024
	BaseRef string `json:"baseRef"`
	// HeadRef is BaseRef for a push, the source branch without prefix for a pull request.
	// +kubebuilder:validation:MaxLength=1024
	HeadRef string `json:"headRef"`
	// HeadURL is the web URL of the repository that holds HeadRef: the fork's for a pull request from a fork.
	// +kubebuilder:validation:MaxLength=2048
	HeadURL string `json:"headURL"`
	// Sender is the login of the account the event is attributed to (GitHub: pusher, or author of the pull request).
	// +kubebuilder:validation:MaxLength=255
	Sender string `json:"sender"`
	// PullRequest is set for TriggerPullRequest.
	// +optional
	PullRequest *PullRequest `json:"pullRequest,omitempty"`
	// Commit is what the payload says of SHA. Providers complete it when it is nil.
	// +optional
	Commit *Commit `json:"commit,omitempty"`
	// Headers are the delivery's headers that CEL expressions may read, canonical names; never one that bears a secret.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Headers map[string]string `json:"headers,omitempty"`
	// Payload names the EventPayload objects that hold the raw body.
	Payload BlobReference `json:"payload"`
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
	// URL is the web URL ("https://github.com/acme/app").
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`
	// CloneURL is the URL for git clone over HTTP.
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
	// HeadProjectID is the service's id of the repository the branch lives in; 0 when that repository was deleted.
	HeadProjectID int64 `json:"headProjectID"`
	// +optional
	// +kubebuilder:validation:MaxItems=100
	Labels []string `json:"labels,omitempty"`
	// +optional
	Draft bool `json:"draft,omitempty"`
}

// Commit is what people know a commit by.
type Commit struct {
	// Title is the first line of the message, cut to 1024 bytes on a UTF-8 boundary.
	// +optional
	Title string `json:"title,omitempty"`
	// URL is the commit's web page.
	// +optional
	URL string `json:"url,omitempty"`
}

// BlobReference names a blob kept in EventPayload objects of the same namespace: <name>-0 … <name>-<chunks-1>.
type BlobReference struct {
	// Name is the common part of the objects' names.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Digest is "sha256:<64 hex>" of the uncompressed bytes.
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest"`
	// Chunks is the number of objects.
	// +kubebuilder:validation:Minimum=1
	Chunks int32 `json:"chunks"`
	// Size is the number of uncompressed bytes.
	Size int64 `json:"size"`
}

// GitEventStatus is what was learnt of and done for an event.
type GitEventStatus struct {
	// Status carries the conditions Planned, Created, Reported (aggregated in Ready) and Annotated (not aggregated).
	duckv1.Status `json:",inline"`
	// Phase is "Settled" when nothing is left to do; controllers watch only events that are not.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// Disposition is what became of the event, set once by plan or expire.
	// +optional
	Disposition Disposition `json:"disposition,omitempty"`
	// Plan is what will be done, written down before anything is done.
	// +optional
	Plan *Plan `json:"plan,omitempty"`
	// Runs are the planned PipelineRuns, one an entry, in the order of their files.
	// +optional
	Runs []Run `json:"runs,omitempty"`
	// Checks are the reports that were sent or are about to be sent.
	// +optional
	Checks []Check `json:"checks,omitempty"`
	// Waits are the steps that wait for something, and until when they are not tried again.
	// +optional
	// +listType=map
	// +listMapKey=step
	Waits []Wait `json:"waits,omitempty"`
	// SettledAt is when Phase became Settled.
	// +optional
	SettledAt *metav1.Time `json:"settledAt,omitempty"`
}

// Phase tells whether an event still needs a controller.
type Phase string

// PhaseSettled is the only phase with a name: nothing is left to do.
const PhaseSettled Phase = "Settled"

// Disposition is what became of an event.
type Disposition string

const (
	// DispositionIgnored: no pipeline is for this event.
	DispositionIgnored Disposition = "Ignored"
	// DispositionRuns: PipelineRuns were planned.
	DispositionRuns Disposition = "RunsCreated"
	// DispositionPending: nobody who may has started it; one queued check says so.
	DispositionPending Disposition = "PendingApproval"
	// DispositionRefused: it cannot be served (namespace gone, Repository gone, parked).
	DispositionRefused Disposition = "Refused"
)

// Plan is the outcome of the plan step.
type Plan struct {
	// HeadSHA is the commit that is run and reported on.
	HeadSHA string `json:"headSHA"`
	// DefinitionSHA is the commit .tekton was read at.
	// +optional
	DefinitionSHA string `json:"definitionSHA,omitempty"`
	// Reason says in one word why this disposition ("NoPipelines", "NoMatch", "Selected", "PendingApproval").
	Reason string `json:"reason"`
	// Message says the same in one sentence.
	// +optional
	Message string `json:"message,omitempty"`
	// Decisions hold one entry for each pipeline found.
	// +optional
	Decisions []Decision `json:"decisions,omitempty"`
	// Blob holds the PipelineRuns exactly as they will be created: a JSON list in the order of status.runs.
	// +optional
	Blob *BlobReference `json:"blob,omitempty"`
}

// Decision says why a pipeline was selected or not.
type Decision struct {
	// File is the path in the repository, Document the 0-based index of the YAML document in it.
	File     string `json:"file"`
	Document int32  `json:"document"`
	// Pipeline is the author's name or generateName.
	// +optional
	Pipeline string `json:"pipeline,omitempty"`
	// Reason is "selected", or the first clause that said no with the values it saw.
	Reason string `json:"reason"`
}

// Run is one planned PipelineRun and what became of it.
type Run struct {
	// Pipeline is the author's name or generateName, without the trailing dash: the check is named after it.
	Pipeline string `json:"pipeline"`
	// Namespace and Name identify the PipelineRun; the name is deterministic.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Secret is the name of the git-auth secret the run mounts; empty when none is made.
	// +optional
	Secret string `json:"secret,omitempty"`
	// UID of the PipelineRun, set once it is known to exist.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// Refused is the author's text refused before or at creation. Nothing else may set it.
	// +optional
	Refused *Refusal `json:"refused,omitempty"`
	// Result is the terminal state, kept so that a run pruned during an outage keeps its result.
	// +optional
	Result *Result `json:"result,omitempty"`
	// Patched is the digest of the metadata that was last patched onto the PipelineRun.
	// +optional
	Patched string `json:"patched,omitempty"`
}

// Refusal is why the author's text was refused.
type Refusal struct {
	// Reason is one word for machines ("BadYAML", "AdmissionDenied").
	Reason string `json:"reason"`
	// Message is verbatim what refused it said.
	Message string `json:"message"`
}

// Outcome is how a PipelineRun ended.
type Outcome string

const (
	// OutcomeSucceeded: Succeeded=True.
	OutcomeSucceeded Outcome = "Succeeded"
	// OutcomeFailed: Succeeded=False for any reason but cancellation.
	OutcomeFailed Outcome = "Failed"
	// OutcomeCancelled: Succeeded=False because the run was cancelled or stopped.
	OutcomeCancelled Outcome = "Cancelled"
	// OutcomeDeleted: the PipelineRun was deleted before it ended.
	OutcomeDeleted Outcome = "Deleted"
)

// Result is the terminal state of a PipelineRun.
type Result struct {
	Outcome Outcome `json:"outcome"`
	// Reason and Message are those of Tekton's Succeeded condition.
	// +optional
	Reason string `json:"reason,omitempty"`
	// +optional
	Message string `json:"message,omitempty"`
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`
	// Text is the report's body as it was when the run ended (task table, diagnosis).
	// +optional
	Text string `json:"text,omitempty"`
}

// Check is one report and what the Git service has accepted of it.
type Check struct {
	// Key identifies the check within the event: the PipelineRun's name, or "event" for the event's own check.
	Key string `json:"key"`
	// Name is the check's name at the Git service.
	Name string `json:"name"`
	// ID is the service's id; empty until the service has told it.
	// +optional
	ID string `json:"id,omitempty"`
	// Intent is true from before the first attempt to post it: an empty ID then means "look it up first".
	// +optional
	Intent bool `json:"intent,omitempty"`
	// Accepted is the digest of what the service accepted last.
	// +optional
	Accepted string `json:"accepted,omitempty"`
	// Concluded is true when what was accepted had a conclusion.
	// +optional
	Concluded bool `json:"concluded,omitempty"`
}

// Wait is a step that waits.
type Wait struct {
	// Step is "plan", "create/<pipelinerun>", "report" or "annotate".
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
