// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	duckv1 "knative.dev/pkg/apis/duck/v1"
)

// GitEventStatus is what was learnt of and done for an event.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.plan) || !has(oldSelf.plan.manifests) || has(self.plan) && has(self.plan.manifests) || has(self.phase) && self.phase == 'Settled'",message="the manifests of a plan are kept until the event is settled"
type GitEventStatus struct {
	// Status carries the conditions Planned, Created, Reported (aggregated in Ready) and Annotated
	// (not aggregated).
	duckv1.Status `json:",inline"`
	// Phase is "Settled" when nothing is left to do; controllers watch only events that are not.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// Disposition is what became of the event, set by plan; changed only to Refused, when it turns
	// out that none of its runs can be created any more.
	// +optional
	Disposition Disposition `json:"disposition,omitempty"`
	// Outcome says in a few words what became of the event, for people: "Succeeded", "Failed: 1 of
	// 3", "Running", "Waiting: <reason>", "Ignored: <reason>". It follows from the rest of the
	// status. Programs read that.
	// +optional
	Outcome string `json:"outcome,omitempty"`
	// Ref is what people call what the event is about: "main", "tags/v1", or "#12" for a pull
	// request.
	// +optional
	Ref string `json:"ref,omitempty"`
	// Plan is what will be done, written down before anything is done.
	// +optional
	Plan *Plan `json:"plan,omitempty"`
	// Runs are the planned PipelineRuns, one an entry, in the order in which they were decided.
	// +optional
	Runs []Run `json:"runs,omitempty"`
	// Checks are the reports that were sent or are about to be sent.
	// +optional
	Checks []Check `json:"checks,omitempty"`
	// Reply is what is told of the command that the event is, to whoever may give one; unset for
	// every other event.
	// +optional
	Reply *Reply `json:"reply,omitempty"`
	// Waits are the steps that wait for something, and until when they are not tried again.
	// +optional
	// +listType=map
	// +listMapKey=step
	Waits []Wait `json:"waits,omitempty"`
	// Panics is how many reconciles of the event have panicked; it stops at the number that parks
	// an event which is not planned.
	// +optional
	Panics int32 `json:"panics,omitempty"`
	// Begun is how many attempts to plan the event began and have no end: the process was killed
	// meanwhile. It is counted for events that another process may have worked on, and stops at the
	// number that parks the event.
	// +optional
	Begun int32 `json:"begun,omitempty"`
	// SettledAt is when Phase became Settled.
	// +optional
	SettledAt *metav1.Time `json:"settledAt,omitempty"`
	// LateSecrets is true while a secret of the event may still be made although it is settled:
	// another process worked on it, and may have been paused. The sweep deletes such secrets for a
	// while and then takes the mark away.
	// +optional
	LateSecrets bool `json:"lateSecrets,omitempty"`
	// Unreported is true when the event settled because nobody could be told how its checks end:
	// Checks are those that are still open. The sweep reports them once it can and then takes the
	// mark away.
	// +optional
	Unreported bool `json:"unreported,omitempty"`
}

// Phase reports whether an event still needs a controller.
type Phase string

// PhaseSettled is the only phase with a name: nothing is left to do.
const PhaseSettled Phase = "Settled"

// OpenEvents is the field selector of events that are not settled.
const OpenEvents = "status.phase!=" + string(PhaseSettled)

// Disposition is what became of an event.
type Disposition string

const (
	// DispositionIgnored means that no pipeline is for this event.
	DispositionIgnored Disposition = "Ignored"
	// DispositionRuns means that PipelineRuns were planned.
	DispositionRuns Disposition = "RunsCreated"
	// DispositionPending means that nobody who may has started it; one queued check says so.
	DispositionPending Disposition = "PendingApproval"
	// DispositionSkipped means that the author asked for no CI; one concluded check says so.
	DispositionSkipped Disposition = "Skipped"
	// DispositionRefused means that it cannot be served (namespace gone, Repository gone, parked).
	DispositionRefused Disposition = "Refused"
	// DispositionCancels means that it ends what other events of its pull request or commit have
	// started, and starts nothing.
	DispositionCancels Disposition = "Cancels"
	// DispositionSuperseded means that Git had another commit in its place before anything was
	// created for it.
	DispositionSuperseded Disposition = "Superseded"
)

// Plan is the outcome of the plan step.
type Plan struct {
	// HeadSHA is the commit that is run and reported on.
	HeadSHA string `json:"headSHA"`
	// Ref is the branch or tag that the event turned out to be of, in full ("refs/heads/main"): of
	// a comment on a commit, whose delivery names none, and of a re-run of a push. Empty for
	// everything else.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Ref string `json:"ref,omitempty"`
	// At is when the plan was first written with a run, or with the decision that there is none, by
	// the controller's clock: the Git service had headSHA by then. Unset in what versions before
	// recorded.
	// +optional
	At *metav1.Time `json:"at,omitempty"`
	// DefinitionSHA is the commit .tekton was read at.
	// +optional
	DefinitionSHA string `json:"definitionSHA,omitempty"`
	// Reason says in one word why this disposition ("NoPipelines", "NoMatch", "Selected",
	// "PendingApproval").
	Reason string `json:"reason"`
	// Message says the same in one sentence.
	// +optional
	Message string `json:"message,omitempty"`
	// Cancels is what the event ends, of the other events of its pull request or commit; unset for
	// most.
	// +optional
	Cancels *Cancellation `json:"cancels,omitempty"`
	// Decisions hold one entry for each pipeline found.
	// +optional
	Decisions []Decision `json:"decisions,omitempty"`
	// Manifests are the PipelineRuns exactly as they will be created: a JSON list of them as a gzip
	// stream, as long as that is less than MaxManifestBytes.
	// +optional
	// +kubebuilder:validation:MaxLength=21848
	// Its schema is that of GitEvent.payload.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	Manifests []byte `json:"manifests,omitempty"`
	// Blobs hold the PipelineRuns that Manifests has no room for, each a JSON list of them: one for
	// each time that something was decided.
	// +optional
	Blobs []BlobReference `json:"blobs,omitempty"`
	// Secret is the name of the Secret beside the GitEvent that holds what the markers in the
	// PipelineRuns stand for: the values of secret params. Empty when there are none.
	// +optional
	Secret string `json:"secret,omitempty"`
	// Approval is why headSHA may run although whoever wrote it may not start anything: somebody
	// has approved it. It is on record for later events of the pull request at the same commit.
	// +optional
	Approval *Approval `json:"approval,omitempty"`
	// OwnHead is true if a comment or a re-run is of a pull request whose head is a branch of the
	// repository itself and needed no approval. Deliveries do not say where that head is.
	// +optional
	OwnHead bool `json:"ownHead,omitempty"`
	// EndsPending is true when the commit may show that it waits for approval, which is over with
	// this event.
	// +optional
	EndsPending bool `json:"endsPending,omitempty"`
	// Priority is what settings.queue_priority of the Repository gave when the first run was
	// decided, from -100 to 100. It stands: unset as long as nothing was evaluated.
	// +optional
	Priority *int32 `json:"priority,omitempty"`
	// StartedBy is, of an event that waits for approval, the GitEvent that has started its commit.
	// +optional
	StartedBy string `json:"startedBy,omitempty"`
}

// MaxPriority is the most that a priority is, and -MaxPriority the least.
const MaxPriority = 100

// Approval says that somebody who may has approved one commit of a pull request.
type Approval struct {
	// By is the login of whoever approved it.
	By string `json:"by"`
	// SHA is the commit that was approved if it is another one than headSHA, for which that is
	// remembered (S22). Empty if it is headSHA.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	SHA string `json:"sha,omitempty"`
	// Event is the GitEvent of the comment that did.
	Event string `json:"event"`
	// BaseRef and HeadProjectID are the pull request's target branch and the repository of its
	// branch by then.
	BaseRef       string `json:"baseRef"`
	HeadProjectID int64  `json:"headProjectID"`
}

// MaxManifestBytes is more than the manifests that a status holds itself, compressed. One of a
// usual pipeline takes 1 to 3 KiB. The controllers hold the status of each open event in memory:
// 500 that wait take at most 8 MiB for this.
const MaxManifestBytes = 16 << 10

// Decision says why a pipeline was selected or not.
type Decision struct {
	// File is the path in the repository, Document the 0-based index of the YAML document in it.
	File     string `json:"file"`
	Document int    `json:"document"`
	// Pipeline is the author's name or generateName.
	// +optional
	Pipeline string `json:"pipeline,omitempty"`
	// Reason is "selected" with the clauses that agreed, or the first clause that said no with the
	// values it saw, or what an open decision waits for.
	Reason string `json:"reason"`
	// Selected is what Reason will be of a pipeline that is selected but still open: its Reason
	// says what it waits for.
	// +optional
	Selected string `json:"selected,omitempty"`
	// Open is true as long as something that the decision or its PipelineRun depends on could not
	// be read. The other pipelines do not wait for it.
	// +optional
	Open bool `json:"open,omitempty"`
}

// Run is one planned PipelineRun and what became of it.
type Run struct {
	// Pipeline is the author's name or generateName as it is written: the check is named after it.
	Pipeline string `json:"pipeline"`
	// Namespace and Name identify the PipelineRun; the name is deterministic.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Note is a sentence that every report of the run repeats: what its reader should know of how
	// it was planned.
	// +optional
	Note string `json:"note,omitempty"`
	// Secret is the name of the git-auth secret the run mounts; empty when none is made.
	// +optional
	Secret string `json:"secret,omitempty"`
	// SecretRenewAt is when the secret of a run that is not over gets a fresh token: well before
	// the last one expires. Unset means at once.
	// +optional
	SecretRenewAt *metav1.Time `json:"secretRenewAt,omitempty"`
	// SecretOwned is true when the PipelineRun owns its secret, beside the Repository: it stays
	// when the Repository goes.
	// +optional
	SecretOwned bool `json:"secretOwned,omitempty"`
	// Unresolved is true as long as something that it refers to could not be read: it is selected,
	// and what will be created is not known yet.
	// +optional
	Unresolved bool `json:"unresolved,omitempty"`
	// UID of the PipelineRun, set once it is known to exist.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// Refused is the author's text refused before or at creation. Nothing else may set it.
	// +optional
	Refused *Refusal `json:"refused,omitempty"`
	// Result is the terminal state, kept so that a run pruned during an outage keeps its result.
	// +optional
	Result *Result `json:"result,omitempty"`
	// MaxKeepRuns is how many ended runs of the pipeline its author wants to keep; -1 if what is
	// written is no number of runs, and all are kept. Unset if the author says nothing, and for a
	// settled event.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	MaxKeepRuns *int64 `json:"maxKeepRuns,omitempty"`
	// CancelInProgress is true if the run ends older ones of the pipeline, of the same pull
	// request, branch or tag.
	// +optional
	CancelInProgress bool `json:"cancelInProgress,omitempty"`
	// Patched is the digest of the metadata that was last patched onto the PipelineRun.
	// +optional
	Patched string `json:"patched,omitempty"`
}

// Creatable reports whether the PipelineRun is still to be created.
func (r *Run) Creatable() bool {
	return !r.Unresolved && r.UID == "" && r.Refused == nil && r.Result == nil
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
	// OutcomeSucceeded means Succeeded=True.
	OutcomeSucceeded Outcome = "Succeeded"
	// OutcomeFailed means Succeeded=False for any reason but cancellation.
	OutcomeFailed Outcome = "Failed"
	// OutcomeCancelled means Succeeded=False because the run was cancelled or stopped, or that it
	// was given up before it was created.
	OutcomeCancelled Outcome = "Cancelled"
	// OutcomeDeleted means that the PipelineRun was deleted before it ended.
	OutcomeDeleted Outcome = "Deleted"
	// OutcomeSkipped means that its check showed what was waited for, which is over.
	OutcomeSkipped Outcome = "Skipped"
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
	// Brief is what failed, in one line of plain text, for Git services that show no more.
	// +optional
	Brief string `json:"brief,omitempty"`
}
