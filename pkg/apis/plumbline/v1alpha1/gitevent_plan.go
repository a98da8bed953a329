// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Plan is the result of the plan step.
type Plan struct {
	// The commit that runs and that checks are reported on.
	HeadSHA string `json:"headSHA"`
	// The full branch or tag ("refs/heads/main") that the event belongs to, if its delivery
	// does not say: for a comment on a commit, and for a re-run of a push. It is empty for every
	// other event.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Ref string `json:"ref,omitempty"`
	// The project of a request to /incoming, which names it only by its URL. It is unset for
	// every other event.
	// +optional
	Located *Located `json:"located,omitempty"`
	// When the plan was first stored with a run, or with the decision that there is none, by
	// the controller's clock. The Git service had headSHA by then. It is unset in events of earlier
	// versions.
	// +optional
	At *metav1.Time `json:"at,omitempty"`
	// The commit at which .tekton was read.
	// +optional
	DefinitionSHA string `json:"definitionSHA,omitempty"`
	// One word for the disposition ("NoPipelines", "NoMatch", "Selected",
	// "PendingApproval").
	Reason string `json:"reason"`
	// The reason as a sentence.
	// +optional
	Message string `json:"message,omitempty"`
	// Which runs of other events the event cancels; unset for most events.
	// +optional
	Cancels *Cancellation `json:"cancels,omitempty"`
	// One entry for each pipeline that was found.
	// +optional
	Decisions []Decision `json:"decisions,omitempty"`
	// The PipelineRuns exactly as they will be created: a JSON list, compressed with
	// gzip, if that is smaller than 16 KiB.
	// +optional
	// +kubebuilder:validation:MaxLength=21848
	// Its schema is that of GitEvent.payload.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	Manifests []byte `json:"manifests,omitempty"`
	// The PipelineRuns that do not fit into manifests, each blob as a JSON list. There
	// is one blob for each time that something was decided.
	// +optional
	Blobs []BlobReference `json:"blobs,omitempty"`
	// The name of the Secret, in the GitEvent's namespace, that has the values of secret
	// params. The PipelineRuns have markers in place of them. It is empty when there are none.
	// +optional
	Secret string `json:"secret,omitempty"`
	// Who approved headSHA, if its author may not start runs. Later events of the
	// pull request at the same commit use it too.
	// +optional
	Approval *Approval `json:"approval,omitempty"`
	// True if a comment or a re-run is for a pull request from a branch of the
	// repository itself, and needed no approval. The delivery does not say where the head is.
	// +optional
	OwnHead bool `json:"ownHead,omitempty"`
	// True when the commit may have a check that waits for approval, which this
	// event ends.
	// +optional
	EndsPending bool `json:"endsPending,omitempty"`
	// The value of the Repository's settings.queue_priority when the first run was
	// decided, from -100 to 100. It does not change afterwards. It is unset until it has been
	// evaluated.
	// +optional
	Priority *int32 `json:"priority,omitempty"`
	// Set on an event that waits for approval: the GitEvent that has started its
	// commit since.
	// +optional
	StartedBy string `json:"startedBy,omitempty"`
}

// MaxPriority is the highest priority, and -MaxPriority the lowest.
const MaxPriority = 100

// Approval is the approval of one commit of a pull request by a user who may start runs.
type Approval struct {
	// The login of the user who approved it.
	By string `json:"by"`
	// The commit that was approved, if the approval is of another commit and is remembered
	// for headSHA. It is empty if headSHA itself was approved.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	SHA string `json:"sha,omitempty"`
	// The GitEvent of the comment that approved it.
	Event string `json:"event"`
	// The pull request's target branch at that time.
	BaseRef string `json:"baseRef"`
	// The Git service's id of the pull request's source repository at that time.
	HeadProjectID int64 `json:"headProjectID"`
}

// MaxManifestBytes is the limit below which a status stores its compressed manifests itself. A
// usual pipeline takes 1 to 3 KiB. The controllers cache the status of each unsettled event: 500
// waiting events take at most 8 MiB for this.
const MaxManifestBytes = 16 << 10

// Why one pipeline was selected or not.
type Decision struct {
	// The path of the file in the repository.
	File string `json:"file"`
	// The index of the YAML document in the file; the first one is 0.
	Document int `json:"document"`
	// The author's name or generateName.
	// +optional
	Pipeline string `json:"pipeline,omitempty"`
	// "selected" with the clauses that matched; or the first clause that did not match,
	// with its values; or what an open decision waits for.
	Reason string `json:"reason"`
	// The future reason of a pipeline that is selected but still open. Its reason says what it
	// waits for.
	// +optional
	Selected string `json:"selected,omitempty"`
	// True while something that the decision or its PipelineRun depends on could not be
	// read. Other pipelines do not wait for it.
	// +optional
	Open bool `json:"open,omitempty"`
}

// Decided reports whether there is a plan without open decisions.
func (p *Plan) Decided() bool {
	if p == nil {
		return false
	}
	for _, d := range p.Decisions {
		if d.Open {
			return false
		}
	}
	return true
}

// Of returns the commit that was approved: the head of the plan that has the approval, or the one
// whose approval is remembered for it.
func (a *Approval) Of(head string) string {
	if a.SHA != "" {
		return a.SHA
	}
	return head
}

// Says returns a sentence for people: who approved which commit.
func (a *Approval) Says(head string) string {
	says := a.By + " has approved commit " + a.Of(head)
	if a.Of(head) != head {
		says += ", which is remembered for commit " + head
	}
	return says + "."
}
